#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/stacks/line_table_core.hpp"
#include "runtime/os/stacks/memory_port.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::os {

struct python_release {
  std::uint32_t minor = 0;            ///< of 3.x
  std::optional<std::uint32_t> patch; ///< nothing: not known, and not needed
};
std::string to_string(const python_release& r); ///< "3.11.2", "3.8"

/// The minor version in the name of an interpreter or its library: "libpython3.10.so.1.0",
/// "/opt/env/bin/python3.8", "lib/python3.9", "python3.7m"; nothing: the name has none.
std::optional<std::uint32_t> minor_in_name(std::string_view name);

/// A text that is a version of this minor one, as the interpreter has it in its constants; `before`
/// is the character in front of it, which may belong to a longer text that has the same end
/// ("/opt/pythons/3.8.18").
std::optional<python_release> release_in_constant(std::string_view text, char before);

/// Where the fields of an interpreter's structures are that lead to the frames of its threads, as
/// offsets in bytes. They differ from one minor version to the next and stay within one; from 3.13
/// on an interpreter describes itself.
struct python_layout {
  static constexpr std::uint32_t none = UINT32_MAX;

  // The runtime, and the interpreters in it.
  std::uint32_t finalizing = none; ///< the thread that ends the interpreter; 0: none does
  std::uint32_t interpreters = none;
  std::uint32_t running_thread = none; ///< up to 3.11: the thread that has the lock
  std::uint32_t interpreter_next = none, interpreter_threads = none;
  std::uint32_t interpreter_lock = none; ///< 3.12: a pointer to the lock
  std::uint32_t lock_holder = none, lock_taken = none;
  // A thread.
  std::uint32_t thread_next = none, thread_interpreter = none;
  std::uint32_t thread_id = none;        ///< pthread_self()
  std::uint32_t thread_native_id = none; ///< gettid(), from 3.11 on
  std::uint32_t thread_frame = none;
  std::uint32_t thread_frame_within = none; ///< 3.11, 3.12: of what thread_frame points to
  // A frame.
  std::uint32_t frame_previous = none, frame_code = none, frame_locals = none;
  std::uint32_t frame_instruction = none;
  std::uint32_t frame_owner = none; ///< from 3.11 on
  std::uint32_t owners = 0;         ///< from this on, an owner's frame is no function's
  // A function's code.
  std::uint32_t code_file = none, code_name = none, code_first_line = none, code_lines = none;
  std::uint32_t code_variables = none;
  std::uint32_t code_instructions = none; ///< from 3.11 on
  // Objects.
  std::uint32_t object_type = 8, type_name = 24;
  std::uint32_t tuple_size = 16, tuple_items = 24, bytes_size = 16, bytes_data = 32;
  std::uint32_t text_length = 16, text_state = 32, text_ascii = 48, text_wide = 72;
  std::uint32_t int_tag = 16, int_digits = 24;

  line_table lines = line_table::entries;
  bool instruction_is_index = false; ///< up to 3.10, and else a pointer
  std::uint32_t index_scale = 1;     ///< bytes
  bool int_has_sign_bits = false;    ///< from 3.12 on, the tag holds them besides the size
  bool has_no_lock = false;          ///< built without the global interpreter lock
};

/// Of the versions that do not describe themselves (3.8 to 3.12).
result<python_layout> layout_of(python_release release);

/// Of a runtime that describes itself (3.13 and 3.14), and which release it is.
struct described_python {
  python_release release;
  python_layout layout;
};
result<described_python> layout_at(memory_port& memory, std::uint64_t runtime);

/// Does the runtime begin with a description of itself?
bool is_described(memory_port& memory, std::uint64_t runtime);

} // namespace troupe::os
