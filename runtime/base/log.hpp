#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::log {

/// `notice` is what a user wants to read while a job runs; `info` is for a closer look.
enum class level : std::uint8_t { debug, info, notice, warning, error };

const char* to_string(level l);

using value = std::variant<std::string, std::int64_t, double, bool>;

/// Something that happened. `text` is a sentence for people; `name` and `fields` are the same for
/// machines.
struct event {
  level severity = level::info;
  std::string name; ///< stable, e.g. "generation_sealed"
  std::string text;
  std::vector<std::pair<std::string, value>> fields;
};

/// Takes events from any thread. `component` is the actor's place in the tree, e.g.
/// "master/rendezvous".
using sink = std::function<void(const std::string& component, const event&)>;

} // namespace troupe::log
