#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// A part of this program's work that is done by a child of it, because it may never end, or may
/// take along the process that does it.
namespace troupe::os {

struct child_task {
  std::string program;            ///< a file
  std::vector<std::string> words; ///< its arguments, from its name on: any user may read them
  std::string input;              ///< what it finds on its standard input
  std::size_t output_max = 0;     ///< more ends it
  duration within{};              ///< longer ends it
  int stop = -1;                  ///< a descriptor: as soon as it can be read, that ends it
  /// Told all that it has written so far, whenever there is more. May be empty.
  std::function<void(const std::string& output)> heard;
};

struct child_end {
  enum class cause {
    exited,    ///< by itself: `number` is its exit code
    signalled, ///< by a signal from elsewhere, or a crash: `number` is the signal
    late,
    stopped,
    too_much, ///< it has written more than it may
  };

  cause how = cause::exited;
  int number = 0;
  /// It was killed, and the kernel does not let it end: it waits in a driver or for a disk.
  bool held = false;
  std::string output;     ///< as much as came, `output_max` at most
  std::string last_error; ///< the last line of its standard error
};

/// Blocks for `within` at most, and a moment to end the child. It has none of our files and hears
/// all signals. Error: it cannot be started.
result<child_end> run_child(const child_task& task);

} // namespace troupe::os
