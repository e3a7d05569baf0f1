#include "tests/sim/places.hpp"

#include "tests/sim/fiber.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::sim {

void sim_place::lose_cache(instant now) {
  ++disturbed;
  for (auto one = cache.rbegin(); one != cache.rend(); ++one) {
    if (now - one->at > written_back_within)
      continue;
    if (one->before)
      content.files[one->name] = *one->before;
    else
      content.files.erase(one->name);
    undone.insert(one->number);
  }
  cache.clear();
}

place_use::~place_use() {
  if (ended_)
    return;
  ++place_.disturbed;
  end();
}

void place_use::done() {
  if (!ended_)
    end();
}

void place_use::end() {
  ended_ = true;
  if (--place_.at_work == 0)
    world_.tell(&observer::place_rests, &place_);
}

void sim_storage::pass(duration least, duration most) {
  auto* const me = fiber::current();
  if (me == nullptr)
    return;
  const auto takes = world_.between(least, most);
  if (!place_.slow)
    return me->pass(takes);
  struct slow_operation {
    explicit slow_operation(std::uint64_t& count) : count_(count) { ++count_; }
    ~slow_operation() { --count_; }
    std::uint64_t& count_;
  } const counted(place_.slow_operations);
  me->pass(takes * 100);
}

result<void> sim_storage::usable(const std::string& name, bool writes) {
  if (place_.broken || (writes && place_.full))
    ++place_.disturbed;
  if (place_.broken)
    return failure(errc::unavailable, fmt::format("'{}': input/output error", name));
  if (writes && place_.full)
    return failure(errc::unavailable,
                   fmt::format("'{}' cannot be written: no space left on device", name));
  return {};
}

/// Others see it from now on.
template<class Done>
auto sim_storage::apply(const std::string& name, Done&& done) {
  const auto known = place_.content.files.find(name);
  auto before = known == place_.content.files.end() ? std::nullopt : std::optional(known->second);
  auto how = done();
  if (how) {
    world_.tell(&observer::file_changed, place_, name, before);
    place_.cache.push_back({name, std::move(before), ++place_.writes, world_.events.now()});
  }
  return how;
}

/// What is on its way when the process ends arrives or does not. Once it has arrived the rest of
/// the time passes until it is durable; a later write to the same file that is durable makes it so.
template<class Done>
auto sim_storage::write(const std::string& name, duration least, duration most, Done&& done) {
  try {
    pass(least / 2, most / 2);
  } catch (const fiber::process_ended&) {
    if (world_.random.chance(0.5))
      (void)apply(name, done);
    throw;
  }
  return apply_and_sync(name, least, most, done);
}

template<class Done>
auto sim_storage::apply_and_sync(const std::string& name, duration least, duration most,
                                 Done&& done) {
  auto how = apply(name, done);
  if (!how)
    return how;
  const auto me = place_.writes;
  pass(least / 2, most / 2);
  auto& cache = place_.cache;
  if (place_.undone.erase(me) != 0) {
    how = failure(errc::unavailable, fmt::format("'{}' is not durable: power was lost", name));
    return how;
  }
  cache.erase(std::remove_if(cache.begin(), cache.end(),
                             [&](const auto& one) { return one.name == name && one.number <= me; }),
              cache.end());
  return how;
}

result<ports::receipt> sim_storage::put_if(const std::string& name, ports::bytes_view bytes,
                                           const std::atomic<bool>& stop,
                                           const ports::may_replace& may) {
  // Of the caller's memory nothing is used once it may have gone.
  const std::string copy(reinterpret_cast<const char*>(bytes.data), bytes.size);
  // The hidden file; of that nothing is left if the process ends.
  const auto least = place_.write_min, most = place_.write_max;
  pass(least / 2, most / 2);
  if (auto can = usable(name, true); !can)
    return tl::make_unexpected(can.error());
  if (place_.fails > 0 && world_.random.chance(place_.fails)) {
    ++place_.disturbed;
    return failure(errc::unavailable,
                   fmt::format("'{}' cannot be written: no space left on device", name));
  }
  if (auto allowed = may(); !allowed)
    return tl::make_unexpected(std::move(allowed.error()));
  return apply_and_sync(name, least, most, [&, this]() -> result<ports::receipt> {
    if (auto can = usable(name, true); !can)
      return tl::make_unexpected(can.error());
    return content_.put(name, ports::bytes_of(copy), stop);
  });
}

result<ports::receipt> sim_storage::get(const std::string& name, ports::bytes_room into,
                                        const std::atomic<bool>& stop) {
  pass({}, place_.operation_max);
  if (auto can = usable(name, false); !can)
    return tl::make_unexpected(can.error());
  return content_.get(name, into, stop);
}

result<std::string> sim_storage::get_small(const std::string& name, std::size_t limit) {
  pass({}, place_.operation_max);
  if (auto can = usable(name, false); !can)
    return tl::make_unexpected(can.error());
  return content_.get_small(name, limit);
}

result<void> sim_storage::replace(const std::string& name, std::string_view content) {
  return write(name, {}, place_.operation_max, [&, this]() -> result<void> {
    if (auto can = usable(name, true); !can)
      return can;
    return content_.replace(name, content);
  });
}

result<std::vector<ports::stored_file>> sim_storage::list(const std::string& below) {
  pass({}, place_.operation_max / 2);
  auto first = content_.list(below);
  pass({}, place_.operation_max / 2);
  if (auto can = usable(below, false); !can)
    return tl::make_unexpected(can.error());
  const auto& now = place_.content.files;
  if (first)
    first->erase(std::remove_if(first->begin(), first->end(),
                                [&now](const auto& file) { return now.count(file.name) == 0; }),
                 first->end());
  return first;
}

result<std::vector<ports::stored_entry>> sim_storage::entries() {
  pass({}, place_.operation_max);
  if (auto can = usable("", false); !can)
    return tl::make_unexpected(can.error());
  return content_.entries();
}

result<void> sim_storage::remove(const std::string& name) {
  const auto all = content_.list(name);
  if (!all)
    return tl::make_unexpected(all.error());
  for (const auto& file : *all)
    if (auto removed = write(file.name, {}, place_.operation_max,
                             [&, this]() -> result<void> {
                               if (auto can = usable(file.name, false); !can)
                                 return can;
                               return content_.remove(file.name);
                             });
        !removed)
      return removed;
  return {};
}

} // namespace troupe::sim
