#include "launch/wiring/placement.hpp"

#include "launch/options/join_command.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/net/addresses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::launch {

placement place_master(const launcher_options& o) {
  using hosting = placement::hosting;
  const auto& r = o.rendezvous;
  if (r.standalone)
    return {hosting::here, {"127.0.0.1", 0}};
  if (r.at_first_node && o.nodes_max == 1)
    return {hosting::here, {"127.0.0.1", 0}, r.endpoint.port};
  if (r.settings.is_host)
    return {*r.settings.is_host ? hosting::here : hosting::elsewhere, r.endpoint};
  if (r.node_rank.value_or(0) > 0)
    return {hosting::elsewhere, r.endpoint};
  // At an endpoint there may be a master already (actor-master); a static address is rank 0's own.
  return {r.node_rank && r.at_first_node ? hosting::here : hosting::if_able, r.endpoint};
}

log::event told_at_start(const ports::endpoint& master, bool runs_here, duration away_timeout) {
  const auto where = ports::to_string(master);
  auto text =
      runs_here
          ? fmt::format("this node runs the job's master at {}; if this machine is lost for good, "
                        "the other nodes train on for at most {} and recover from no failure "
                        "(actor-master on another machine avoids that)",
                        where, in_words(away_timeout))
          : fmt::format("this node runs no master; it looks for the job's at {}", where);
  return {runs_here ? log::level::notice : log::level::info,
          "master_placed",
          std::move(text),
          {{"endpoint", where}, {"here", runs_here}}};
}

log::event told_to_others(const launcher_options& o, const ports::endpoint& master,
                          const std::string& host) {
  const auto where = ports::to_string(master);
  if (os::is_loopback(master.host))
    return {o.rendezvous.endpoint_is_said ? log::level::notice : log::level::warning,
            "only_this_machine",
            fmt::format("only this machine reaches {}: for nodes on others, give each {} with this "
                        "machine's name or address ({})",
                        where,
                        o.rendezvous.endpoint_from == "--master-addr"
                            ? "of them, and this one, --master-addr HOST"
                            : "--rdzv-endpoint HOST:PORT",
                        host),
            {{"endpoint", where}}};
  const auto token = o.common.token_from.empty()
                         ? ""
                         : fmt::format(" (and the token file {})", o.common.token_from);
  const auto command = join_command(o.arguments, master);
  return {log::level::notice,
          "how_to_join",
          fmt::format("other nodes join with{}: {}", token, command),
          {{"command", command}}};
}

namespace {

log::event heard_elsewhere(const std::vector<std::string>& options, const ports::endpoint& master) {
  const auto where = ports::to_string(master);
  return {log::level::notice,
          "masters_options",
          fmt::format("{}: the program that runs the job's master acts on this, at {}; if that was "
                      "not given the same, it has no effect",
                      fmt::join(options, ", "), where),
          {{"endpoint", where}}};
}

} // namespace

std::vector<log::event> lines_at_start(const launcher_options& o, const ports::endpoint& master,
                                       bool runs_here, const std::string& host) {
  std::vector<log::event> lines{told_at_start(master, runs_here, o.master_away_timeout)};
  // In an allocation of a scheduler each node is told by its variables.
  if (runs_here && !o.rendezvous.found_by_scheduler)
    lines.push_back(told_to_others(o, master, host));
  if (!runs_here && !o.of_master.empty())
    lines.push_back(heard_elsewhere(o.of_master, master));
  return lines;
}

} // namespace troupe::launch
