#include "tests/sim/places.hpp"

#include "tests/sim/fiber.hpp"

#include <fmt/format.h>

namespace troupe::sim {

void sim_storage::pass(duration least, duration most) {
  if (auto* const me = fiber::current())
    me->sleep(world_.between(least, most) * (place_.slow ? 100 : 1));
}

/// What is on its way when the process ends arrives or does not.
template<class Done>
auto sim_storage::write(duration least, duration most, Done&& done) {
  try {
    pass(least, most);
  } catch (const fiber::process_ended&) {
    if (world_.random.chance(0.5))
      (void)done();
    throw;
  }
  return done();
}

result<ports::receipt> sim_storage::put(const std::string& name, ports::bytes_view bytes,
                                        const std::atomic<bool>& stop) {
  return write(place_.write_min, place_.write_max, [&, this]() -> result<ports::receipt> {
    if (place_.full || (place_.fails > 0 && world_.random.chance(place_.fails)))
      return failure(errc::unavailable,
                     fmt::format("'{}' cannot be written: no space left on device", name));
    return content_.put(name, bytes, stop);
  });
}

result<ports::receipt> sim_storage::get(const std::string& name, ports::bytes_room into,
                                        const std::atomic<bool>& stop) {
  pass({}, place_.operation_max);
  return content_.get(name, into, stop);
}

result<std::string> sim_storage::get_small(const std::string& name, std::size_t limit) {
  pass({}, place_.operation_max);
  return content_.get_small(name, limit);
}

result<void> sim_storage::replace(const std::string& name, std::string_view content) {
  return write({}, place_.operation_max, [&, this]() -> result<void> {
    if (place_.full)
      return failure(errc::unavailable,
                     fmt::format("'{}' cannot be written: no space left on device", name));
    return content_.replace(name, content);
  });
}

result<std::vector<ports::stored_file>> sim_storage::list(const std::string& below) {
  pass({}, place_.operation_max);
  return content_.list(below);
}

result<void> sim_storage::remove(const std::string& name) {
  const auto all = content_.list(name);
  if (!all)
    return tl::make_unexpected(all.error());
  for (const auto& file : *all)
    if (auto removed = write({}, place_.operation_max, [&, this] {
          return content_.remove(file.name);
        });
        !removed)
      return removed;
  return {};
}

} // namespace troupe::sim
