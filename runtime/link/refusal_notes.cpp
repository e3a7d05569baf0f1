#include "runtime/link/refusal_notes.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::link {

bool refusal_notes::refused(instant now, const std::string& in_words) {
  if (!ends_ || now >= *ends_) {
    // What was counted is told by tick(), which the owner calls at the end of a period.
    ends_ = now + limits::refusals_counted_for;
    told_ = 0;
  }
  if (told_ < limits::refusals_told) {
    ++told_;
    return true;
  }
  ++counted_;
  last_ = in_words;
  return false;
}

std::optional<std::string> refusal_notes::tick(instant now) {
  if (!ends_ || now < *ends_)
    return std::nullopt;
  ends_.reset();
  const auto counted = std::exchange(counted_, 0);
  if (counted == 0)
    return std::nullopt;
  return fmt::format("{} more connections were refused within {}; the last one, {}", counted,
                     in_words(limits::refusals_counted_for), std::exchange(last_, {}));
}

std::optional<instant> refusal_notes::next_wakeup() const {
  return counted_ > 0 ? ends_ : std::nullopt;
}

} // namespace troupe::link
