#include "launch/keeper/kept_messages.hpp"

namespace troupe::launch {

void kept_messages::keep_in(std::uint8_t slot, const messages::any_msg& what) {
  const auto bytes = what.words().asBytes();
  const std::string_view all(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  if (!keeper_.keep(slot, all))
    (void)keeper_.keep(slot, {});
}

messages::any_msg kept_messages::kept_in(std::uint8_t slot) {
  const auto bytes = keeper_.kept(slot);
  if (!bytes || bytes->empty())
    return {};
  auto admitted = messages::admit(bytes->data(), bytes->size());
  return admitted ? std::move(*admitted) : messages::any_msg{};
}

} // namespace troupe::launch
