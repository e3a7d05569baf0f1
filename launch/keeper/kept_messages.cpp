#include "launch/keeper/kept_messages.hpp"

namespace troupe::launch {

void kept_messages::keep(ports::kept_as place, const messages::any_msg& what) {
  const auto bytes = what.words().asBytes();
  const std::string_view all(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  const auto at = static_cast<std::size_t>(place);
  if (!keeper_.keep(at, all))
    (void)keeper_.keep(at, {});
}

messages::any_msg kept_messages::kept(ports::kept_as place) {
  const auto bytes = keeper_.kept(static_cast<std::size_t>(place));
  if (!bytes || bytes->empty())
    return {};
  auto admitted = messages::admit(bytes->data(), bytes->size());
  return admitted ? std::move(*admitted) : messages::any_msg{};
}

} // namespace troupe::launch
