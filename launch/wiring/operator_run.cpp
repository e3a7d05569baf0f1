#include "launch/wiring/operator_run.hpp"

#include "actors/topology.hpp"
#include "launch/wiring/api_access.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/operator_service.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/kube/api_server.hpp"
#include "runtime/os/net/job_token.hpp"
#include "runtime/sup/engine.hpp"
#include "runtime/sup/root.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>

namespace troupe::launch {

namespace {

/// Its actors only decide: the API server's thread does the rest.
constexpr unsigned operator_threads = 1;
constexpr auto operator_ends_within = 5s;

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto whole = std::chrono::time_point_cast<std::chrono::seconds>(now);
  const auto part = std::chrono::duration_cast<std::chrono::microseconds>(now - whole).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), part);
}

actors::operator_options options_of(const operator_program_options& o, const machine_facts& machine,
                                    const std::string& name_space) {
  actors::operator_options out;
  out.policy.master_image = o.master_image;
  out.policy.master_image_pull_policy = o.master_image_pull_policy;
  using gang = operator_program_options::gang;
  out.policy.gang = o.scheduling == gang::volcano             ? kube::gang::volcano
                    : o.scheduling == gang::scheduler_plugins ? kube::gang::scheduler_plugins
                                                              : kube::gang::none;
  out.policy.group_size = o.group_size;
  out.policy.group_label = o.group_label;
  out.policy.topology_config = o.topology_config;
  out.policy.mark_faulty = o.mark_faulty;
  out.policy.master_metrics_port = o.master_metrics_port;
  if (!o.mark_faulty.empty())
    out.policy.machines_role = o.lease + "-machines";
  out.name_space = o.name_space;
  out.lease_name_space = name_space;
  out.lease = o.lease;
  out.seed = random_seed();
  // A pod that is started again under its name is another one.
  out.self = fmt::format("{}_{:016x}", machine.host, random_seed());
  return out;
}

} // namespace

result<void> run_operator(const operator_program_options& o, const machine_facts& machine,
                          const log::sink& to) {
  if (o.master_metrics_port == kube::master_port)
    return failure(errc::invalid,
                   fmt::format("--master-metrics-port: at {} a job's nodes reach its "
                               "master; choose another port",
                               kube::master_port));
  operator_service service;
  const auto log = service.counting(to);
  auto access = api_access_of(o.account, machine);
  if (!access)
    return tl::make_unexpected(access.error());
  const auto name_space = access->name_space;
  auto api = os::api_server::open(std::move(*access));
  if (!api)
    return tl::make_unexpected(api.error());
  if (auto serves = service.serve(o.metrics_listen, log); !serves)
    return serves;
  const auto over = std::make_shared<std::promise<result<void>>>();
  const auto told = std::make_shared<std::atomic<bool>>(false);
  const auto tell = [over, told](result<void> how) {
    if (!told->exchange(true))
      over->set_value(std::move(how));
  };
  const actors::operator_world world{
      service.counting(*api), utc_now, [] { return os::job_token::fresh().secret(); },
      [tell] {
        tell(failure(errc::refused, "the lease could not be renewed in time: another operator may "
                                    "lead by now, so this one ends"));
      }};
  sup::engine engine(operator_threads);
  auto root = sup::spawn_root(engine.system(),
                              actors::operator_tree(options_of(o, machine, name_space), world,
                                                    actors::operator_addresses{}),
                              log, [tell](const sup::ending& end) {
                                tell(end ? failure(errc::unavailable, end->what) : result<void>());
                              });
  os::io_thread io;
  const signal_watch signals(io, parse_signals(signals_by_default)->ending,
                             [tell](int) { tell({}); });
  auto how = over->get_future().get();
  if (!root.ended())
    root.shutdown(operator_ends_within);
  return how;
}

} // namespace troupe::launch
