#pragma once

#include "runtime/ports/transport.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace troupe::launch {

inline bool address_is_free(ports::transport& transport, const ports::endpoint& where) {
  return transport.listen(where, [](const auto&) {}).has_value();
}

/// Turns every peer away for as long as it is kept. Null: another one has the address.
inline std::unique_ptr<ports::listener> hold_address(ports::transport& transport,
                                                     const ports::endpoint& where) {
  auto mine = transport.listen(where, [](const auto&) {});
  return mine ? std::move(*mine) : nullptr;
}

/// Where a journal that was named is ours now, its master is gone. What still has its address is
/// what the kernel has not yet ended of it, which takes a second on a busy machine: a node that
/// dials it instead waits for a master that no node runs.
inline void await_free_address(ports::transport& transport, const ports::endpoint& where) {
  constexpr auto within = std::chrono::seconds(5);
  constexpr auto asked_every = std::chrono::milliseconds(50);
  const auto until = std::chrono::steady_clock::now() + within;
  while (!address_is_free(transport, where) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(asked_every);
}

} // namespace troupe::launch
