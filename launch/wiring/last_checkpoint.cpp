#include "launch/wiring/last_checkpoint.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

namespace troupe::launch {

struct last_checkpoint::known {
  std::mutex mutex;
  std::int64_t step = -1;
  std::string place;
};

namespace {

template<class T>
std::optional<T> field(const log::event& e, const char* name) {
  for (const auto& [key, value] : e.fields)
    if (key == name)
      if (const auto* found = std::get_if<T>(&value))
        return *found;
  return std::nullopt;
}

} // namespace

last_checkpoint::last_checkpoint() : known_(std::make_shared<known>()) {}

log::sink last_checkpoint::heard_in(log::sink to) const {
  return [to = std::move(to), known = known_](const std::string& component, const log::event& e) {
    if (e.name == "step_complete") {
      const std::lock_guard lock(known->mutex);
      known->step = field<std::int64_t>(e, "step").value_or(-1);
      known->place = field<std::string>(e, "place").value_or("");
    }
    to(component, e);
  };
}

std::string last_checkpoint::in_words() const {
  const std::lock_guard lock(known_->mutex);
  return known_->step < 0 ? "" : fmt::format("step {} at {}", known_->step, known_->place);
}

} // namespace troupe::launch
