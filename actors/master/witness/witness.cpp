#include "actors/master/witness/witness.hpp"

#include "runtime/sup/shell.hpp"

namespace troupe::actors::witness {

handle start(sup::context& ctx, const network_check_options& options,
             const std::shared_ptr<ports::bulk_links>& bulk,
             const sup::address<network_check::handle>& asks) {
  const auto report = [asks](const messages::any_msg& m) {
    if (m.is<messages::GroupProbed>())
      sup::post(asks, m.as<messages::GroupProbed>());
  };
  return network_prober::start(ctx, options.witness ? options.witness->name : node_name{},
                               std::make_shared<probe::no_probe_host>(), bulk, {report, {}});
}

} // namespace troupe::actors::witness
