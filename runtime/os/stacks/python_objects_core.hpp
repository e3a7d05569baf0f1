#pragma once

#include "runtime/os/stacks/memory_port.hpp"
#include "runtime/os/stacks/python_layout_core.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::os {

/// Objects of an interpreter, read from its memory. Nothing is believed: a length beyond its bound,
/// a text that is none and an object of another type are no value.
class python_objects {
 public:
  python_objects(memory_port& memory, const python_layout& layout)
      : memory_(memory), layout_(layout) {}

  /// As UTF-8; a longer one is cut.
  std::optional<std::string> text(std::uint64_t object, std::size_t characters_max);
  std::optional<std::string> bytes(std::uint64_t object, std::size_t bytes_max);
  /// A small one that is not negative.
  std::optional<std::uint64_t> integer(std::uint64_t object);
  /// The place in a tuple of texts at which `name` is.
  std::optional<std::size_t> place_of(std::uint64_t tuple, std::string_view name);
  bool is_a(std::uint64_t object, std::string_view type);

 private:
  memory_port& memory_;
  const python_layout& layout_;
  std::map<std::uint64_t, std::string> types_; ///< by address; the types of code are few
};

} // namespace troupe::os
