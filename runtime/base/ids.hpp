#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// A number with a meaning: two ids of different kinds neither compare nor convert.
template<class Tag, class Rep = std::uint64_t>
struct id {
  Rep value{};

  constexpr id() = default;
  constexpr explicit id(Rep v) : value(v) {}

  friend constexpr bool operator==(id a, id b) { return a.value == b.value; }
  friend constexpr bool operator!=(id a, id b) { return a.value != b.value; }
  friend constexpr bool operator<(id a, id b) { return a.value < b.value; }
  friend constexpr bool operator>(id a, id b) { return b < a; }
  friend constexpr bool operator<=(id a, id b) { return !(b < a); }
  friend constexpr bool operator>=(id a, id b) { return !(a < b); }
  constexpr id next() const { return id{static_cast<Rep>(value + 1)}; }
};

/// A numbered membership of the job; 0 is "none yet". The only fence about training.
using generation = id<struct generation_tag>;
/// Which of a job's masters: a later one has a higher number. A node obeys none that is older than
/// one it has followed.
using term = id<struct term_tag>;
/// Random, drawn anew whenever a node supervisor starts: tells a returned node from its successor
/// of the same name.
using incarnation = id<struct incarnation_tag>;
/// One accepted connection within the life of a master.
using session_id = id<struct session_tag>;

/// Position of a training process within its node, 0 … local world size - 1.
using local_rank = std::uint32_t;
/// Position of a training process within the job, 0 … world size - 1.
using global_rank = std::uint32_t;

/// A node's name, unique within a job.
using node_name = std::string;

} // namespace troupe
