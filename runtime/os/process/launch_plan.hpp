#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "runtime/ports/process.hpp"

#include <optional>
#include <string>

namespace troupe::os {

/// Everything of a process_spec that can be looked up and opened before there is a process, so that
/// most mistakes are found where they can still be explained.
struct launch_plan {
  std::string program;                ///< as exec wants it, relative to the working directory
  std::optional<unique_fd> directory; ///< the working directory; nothing: stay
  std::optional<unique_fd> out;       ///< nothing: inherit
  std::optional<unique_fd> err;

  /// `invalid`, with one line that names what is missing or not allowed.
  static result<launch_plan> make(const ports::process_spec& spec);
};

/// "No such file or directory", as the system words it.
std::string system_message(int error_number);

} // namespace troupe::os
