#include "launch/wiring/master_witness.hpp"

#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/link/role_names.hpp"
#include "runtime/os/net/addresses.hpp"

#include <utility>

namespace troupe::launch {

namespace {

result<std::shared_ptr<os::bulk_exchange>> open_links(os::io_thread& io,
                                                      const master_program_options& o,
                                                      const log::sink& sink,
                                                      std::function<link::options()> timing) {
  auto transport = open_transport(io, o.common, sink, link_timing_of(o), {}, std::move(timing));
  if (!transport)
    return tl::make_unexpected(transport.error());
  auto links = os::bulk_exchange::open(std::move(*transport), {o.listen.host, 0},
                                       {o.rdzv_id, link::master_name, limits::copy_rate});
  if (!links)
    return tl::make_unexpected(links.error());
  return std::shared_ptr<os::bulk_exchange>(std::move(*links));
}

/// Asked on an actor's thread, where no name may be looked up: a node that is known by a name may
/// be here.
bool is_beside(const std::string& address) {
  return !os::numeric(address) || !os::own_addresses(address).empty();
}

} // namespace

std::unique_ptr<master_witness> master_witness::open(const master_program_options& o,
                                                     const log::sink& sink,
                                                     std::function<link::options()> timing) {
  if (!o.check.wanted || o.nodes_max < 2 || os::is_loopback(o.listen.host))
    return nullptr;
  std::unique_ptr<master_witness> made(new master_witness);
  auto links = open_links(made->io_, o, sink, std::move(timing));
  if (!links) {
    sink("actor-master",
         {log::level::warning,
          "no_witness",
          "the master takes no part in checks of the network: " + links.error().what,
          {{"reason", links.error().what}}});
    return nullptr;
  }
  made->links_ = std::move(*links);
  return made;
}

void master_witness::take_part(actors::master_options& options, actors::master_world& world) const {
  options.network_check.witness = {link::master_name, links_->where().port, is_beside};
  world.bulk = links_;
}

} // namespace troupe::launch
