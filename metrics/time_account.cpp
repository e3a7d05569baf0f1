#include "metrics/time_account.hpp"

#include <algorithm>

namespace troupe::metrics {

namespace {

std::size_t at(spent s) {
  return static_cast<std::size_t>(s);
}

} // namespace

const char* to_string(spent s) {
  switch (s) {
  case spent::starting:
    return "starting";
  case spent::training:
    return "training";
  case spent::recovering:
    return "recovering";
  case spent::standing:
    return "standing";
  case spent::concluded:
    break;
  }
  return "concluded";
}

void time_account::count(instant now) {
  auto passed = std::max(now - since_, duration::zero());
  since_ = std::max(now, since_);
  if (state_ == spent::training) {
    const auto taken = std::min(passed, owed_);
    owed_ -= taken;
    passed -= taken;
  }
  sums_[at(state_)] += passed;
}

void time_account::become(instant now, spent next) {
  count(now);
  state_ = next;
}

void time_account::was_rather(instant now, spent kind, duration lost) {
  count(now);
  if (lost <= duration::zero() || kind == spent::training)
    return;
  sums_[at(kind)] += lost;
  owed_ += lost;
}

duration time_account::in(instant now, spent kind) const {
  auto copy = *this;
  copy.count(now);
  return copy.sums_[at(kind)];
}

duration time_account::all(instant now) const {
  auto copy = *this;
  copy.count(now);
  duration sum{};
  for (const auto kind : {spent::starting, spent::training, spent::recovering, spent::standing})
    sum += copy.sums_[at(kind)];
  return sum - copy.owed_;
}

double time_account::goodput(instant now) const {
  auto copy = *this;
  copy.count(now);
  duration all{};
  for (const auto kind : {spent::starting, spent::training, spent::recovering, spent::standing})
    all += copy.sums_[at(kind)];
  return all > duration::zero() ? std::chrono::duration<double>(copy.sums_[at(spent::training)]) /
                                      std::chrono::duration<double>(all)
                                : 0;
}

} // namespace troupe::metrics
