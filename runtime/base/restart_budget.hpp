#pragma once

#include "runtime/base/time.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace troupe {

/// The period of a budget that never comes back.
inline constexpr duration for_life = duration::max();

/// How often something may be started again: so many times within a period, which slides, or in the
/// life of the owner. The restart beyond that is the owner's to refuse, and is not counted: it does
/// not happen.
class restart_budget {
 public:
  explicit restart_budget(unsigned allowed, duration period = for_life)
      : allowed_(allowed), period_(period) {}

  /// Once for each restart; false: it is one too many.
  bool spend(instant now) {
    // A restart is forgiven to the instant: with the period over, and not before.
    while (!recent_.empty() && now - recent_.front() > period_)
      recent_.pop_front();
    if (used_ + recent_.size() >= allowed_)
      return false;
    if (period_ == for_life)
      ++used_;
    else
      recent_.push_back(now);
    return true;
  }

  unsigned used(instant now) const {
    auto count = used_;
    for (const instant at : recent_)
      count += now - at <= period_ ? 1 : 0;
    return count;
  }
  unsigned allowed() const { return allowed_; }
  duration period() const { return period_; }

 private:
  unsigned allowed_;
  duration period_;
  /// Those for life, which need no list: their bound may be a million.
  unsigned used_ = 0;
  /// Those within the period, the oldest first; never longer than `allowed_`.
  std::deque<instant> recent_;
};

/// A budget for life for each name, as large as the others. By name and not by what bears it: a
/// name that comes back has used up what it had.
class restarts_by_name {
 public:
  explicit restarts_by_name(unsigned allowed_to_each, std::map<std::string, unsigned> used = {})
      : allowed_(allowed_to_each), used_(std::move(used)) {}

  /// Makes no entry for the name: to ask counts nothing.
  bool used_up(const std::string& name) const { return used(name) >= allowed_; }
  unsigned used(const std::string& name) const {
    const auto found = used_.find(name);
    return found == used_.end() ? 0 : found->second;
  }
  /// Once for each restart; false: it is one too many, and is not counted.
  bool count(const std::string& name) {
    if (used_up(name))
      return false;
    ++used_[name];
    return true;
  }
  /// To each; what was allowed already stays so.
  void allow_at_least(unsigned to_each) { allowed_ = std::max(allowed_, to_each); }
  /// What bears the name from here on is another one.
  void forget(const std::string& name) { used_.erase(name); }
  /// As it was written down in an earlier life of the owner.
  void recall(const std::string& name, unsigned used) { used_[name] = used; }
  unsigned allowed() const { return allowed_; }
  const std::map<std::string, unsigned>& used() const { return used_; }

 private:
  unsigned allowed_;
  std::map<std::string, unsigned> used_;
};

} // namespace troupe
