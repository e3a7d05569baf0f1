#include "launch/wiring/node_bulk.hpp"

#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/net/addresses.hpp"

namespace troupe::launch {

namespace {

/// Where this node listens. Its address for others is known once it has a link; until then a master
/// at a loopback address, or a node that no other machine can know, says that no other machine
/// comes.
std::string listens_at(const launcher_options& o, const ports::endpoint& master) {
  const auto said = own_address_said(o);
  if (!said.empty())
    return said;
  if (os::is_loopback(master.host))
    return master.host;
  return o.common.reaches_other_machines() ? "*" : "127.0.0.1";
}

} // namespace

result<std::unique_ptr<node_bulk>> node_bulk::open(const launcher_options& o, const node_name& node,
                                                   const ports::endpoint& master,
                                                   ports::keeping& kept, const log::sink& sink) {
  const auto before = kept.kept(place_slot);
  const ports::endpoint where{listens_at(o, master),
                              before ? before.read()->getPort() : std::uint16_t{0}};
  std::unique_ptr<node_bulk> made(new node_bulk);
  auto transport = open_transport(made->io_, o.common, sink, link_timing_of(o), where.host);
  if (!transport)
    return tl::make_unexpected(transport.error());
  auto links =
      os::bulk_exchange::open(std::move(*transport), where, {o.rdzv_id, node, o.copy_rate});
  if (!links)
    return tl::make_unexpected(links.error());
  made->links_ = std::move(*links);
  kept.keep(place_slot, messages::local<messages::CopiesPlace>("actor-launcher", [&made](auto b) {
              b.setPort(made->links_->where().port);
            }));
  return made;
}

} // namespace troupe::launch
