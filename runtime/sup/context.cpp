#include "runtime/sup/context.hpp"

namespace troupe::sup {

context::context(caf::actor_system& system, std::string path, log::sink sink, unsigned incarnation)
    : place_(std::make_shared<place>(system, std::move(path), std::move(sink), incarnation)) {}

void tell_log(const context& ctx, log::level severity, std::string name, std::string text,
              std::vector<std::pair<std::string, log::value>> fields) {
  if (!ctx.log())
    return;
  ctx.log()(ctx.path(), log::event{severity, std::move(name), std::move(text), std::move(fields)});
}

} // namespace troupe::sup
