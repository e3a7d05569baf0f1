#include "trace/process/event_pool.hpp"

namespace troupe::trace {

event_pool::of_context* event_pool::find_or_add(abi::driver_context context) {
  for (auto& known : contexts_) {
    auto handle = known.handle.load(std::memory_order_acquire);
    if (!handle && known.handle.compare_exchange_strong(handle, context))
      return &known;
    if (handle == context)
      return &known;
  }
  return nullptr;
}

std::uint32_t event_pool::take(abi::driver_context context, bool& wanted) {
  of_context* from = find_or_add(context);
  if (!from)
    return none;
  std::uint32_t call = none;
  const auto found = from->free.pop(call);
  if (from->free.size() < limits::pool_block / 2 && made() < limits::pool_max &&
      !from->broken.load(std::memory_order_relaxed) &&
      !from->wanted.exchange(true, std::memory_order_acq_rel))
    wanted = true;
  if (!found)
    return none;
  used_.fetch_add(1, std::memory_order_relaxed);
  return call;
}

void event_pool::give_back(std::uint32_t call) {
  used_.fetch_sub(1, std::memory_order_relaxed);
  contexts_[calls_[call].context].free.push(call);
}

bool event_pool::make_pair(const cuda_driver& driver, std::uint32_t index) {
  const auto number = static_cast<std::uint32_t>(made());
  auto& call = calls_[number];
  if (driver.create(call.start) != abi::driver_success)
    return false;
  if (driver.create(call.end) != abi::driver_success) {
    driver.destroy(call.start);
    return false;
  }
  call.context = index;
  made_.fetch_add(1, std::memory_order_relaxed);
  contexts_[index].free.push(number);
  return true;
}

bool event_pool::any_wanted() const {
  for (const auto& c : contexts_)
    if (c.wanted.load(std::memory_order_acquire))
      return true;
  return false;
}

void event_pool::make_wanted(const cuda_driver& driver) {
  for (std::uint32_t index = 0; index < contexts_.size(); ++index) {
    auto& c = contexts_[index];
    if (!c.wanted.load(std::memory_order_acquire))
      continue;
    auto complete = driver.make_current(c.handle.load()) == abi::driver_success;
    for (std::size_t n = 0; complete && n < limits::pool_block && made() < limits::pool_max; ++n)
      complete = make_pair(driver, index);
    if (!complete)
      c.broken = true;
    c.wanted.store(false, std::memory_order_release);
  }
}

} // namespace troupe::trace
