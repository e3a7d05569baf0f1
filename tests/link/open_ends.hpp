#pragma once

#include "messages/limits.hpp"
#include "tests/link/core_pair.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

/// Ends of a link in the phases that a story begins in.
namespace troupe::testing {

using link::frame;
using link::frame_decoder;
using link::link_core;
using link::options;
using link::phase;

inline const instant start = instant{} + 1h;
inline const options defaults;

inline core_end acceptor(const options& o = defaults) {
  return core_end(link_core::accepting(o, start), start);
}

inline core_end dialler(const options& o = defaults) {
  return core_end(link_core::dialling(o, start, start + o.dial_within, hello()), start);
}

/// An acceptor that has taken a Hello and whose owner listens; its output is empty.
inline core_end open_acceptor(const options& o = defaults) {
  auto end = acceptor(o);
  end.receive(start, on_wire(1, hello().any()));
  end.open(start);
  end.take_output();
  return end;
}

/// And a dialler whose Hello was taken.
inline core_end open_dialler(const options& o = defaults) {
  auto end = dialler(o);
  end.receive(start, beat_on_wire(0));
  end.open(start);
  end.take_output();
  return end;
}

/// Wakes an end whenever it wants to be woken before `until`; answers when it ended, or `until`.
inline instant lives(core_end& end, instant from, instant until) {
  auto now = from;
  while (end.core().now_in() == phase::open && end.wake_at < until)
    end.tick(now = std::max(now, end.wake_at));
  return end.core().now_in() == phase::open ? until : now;
}

inline bool mentions(const error& e, const char* words) {
  return e.what.find(words) != std::string::npos;
}

/// The frames in what an end has written.
inline std::vector<frame> frames_in(const std::vector<kj::byte>& raw) {
  frame_decoder decoder(limits::frame_max);
  std::vector<frame> found;
  for (auto rest = view_of(raw); rest.size() > 0;) {
    auto taken = decoder.take(rest);
    REQUIRE(taken);
    if (*taken)
      found.push_back(std::move(**taken));
  }
  return found;
}

} // namespace troupe::testing
