#include "launch/wiring/last_checkpoint.hpp"

#include "ckpt/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::launch {

struct last_checkpoint::known {
  std::mutex mutex;
  std::map<std::string, std::int64_t> steps; ///< by place
};

namespace {

constexpr auto places_max = limits::checkpoint_places_max;

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
      const auto step = field<std::int64_t>(e, "step");
      const auto place = field<std::string>(e, "place");
      const std::lock_guard lock(known->mutex);
      auto& steps = known->steps;
      if (step && place && (steps.count(*place) != 0 || steps.size() < places_max))
        steps[*place] = *step;
    }
    to(component, e);
  };
}

std::string last_checkpoint::in_words() const {
  const std::lock_guard lock(known_->mutex);
  std::vector<std::string> each;
  for (const auto& [place, step] : known_->steps)
    each.push_back(fmt::format("step {} at {}", step, place));
  if (each.size() < 2)
    return each.empty() ? "" : each.front();
  return fmt::format("that of each directory: {}", fmt::join(each, ", "));
}

} // namespace troupe::launch
