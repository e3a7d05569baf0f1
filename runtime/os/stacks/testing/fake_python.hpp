#pragma once

#include "runtime/os/stacks/memory_port.hpp"
#include "runtime/os/stacks/python_layout_core.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::os {

/// Memory that a test has written, from `base` on.
class fake_memory final : public memory_port {
 public:
  static constexpr std::uint64_t base = 0x10000;

  bool read(std::uint64_t address, void* into, std::size_t size) override {
    ++reads;
    if (address < base || address - base > bytes.size() || size > bytes.size() - (address - base))
      return false;
    std::memcpy(into, bytes.data() + (address - base), size);
    return true;
  }

  std::uint64_t allocate(std::size_t size) {
    const auto at = base + bytes.size();
    bytes.resize(bytes.size() + (size + 15) / 16 * 16);
    return at;
  }
  template<class T>
  void put(std::uint64_t address, T value) {
    std::memcpy(bytes.data() + (address - base), &value, sizeof value);
  }
  void put_bytes(std::uint64_t address, const std::string& text) {
    std::memcpy(bytes.data() + (address - base), text.data(), text.size());
  }

  std::vector<char> bytes;
  std::size_t reads = 0;
};

/// An interpreter in such memory, as the layout of its version has it.
class fake_python {
 public:
  explicit fake_python(std::uint32_t minor) : layout(*layout_of({minor, 0})) {
    code_type_ = type_named("code");
    int_type_ = type_named("int");
    runtime = memory.allocate(4'096);
    interpreter = memory.allocate(4'096);
    lock_ = memory.allocate(64);
    memory.put(runtime + layout.interpreters, interpreter);
    if (layout.interpreter_lock != python_layout::none)
      memory.put(interpreter + layout.interpreter_lock, lock_);
  }

  std::uint64_t text(const std::string& ascii) {
    const auto at = memory.allocate(layout.text_ascii + ascii.size() + 1);
    memory.put<std::int64_t>(at + layout.text_length, static_cast<std::int64_t>(ascii.size()));
    memory.put<std::uint32_t>(at + layout.text_state, 1u << 2 | 0x60);
    memory.put_bytes(at + layout.text_ascii, ascii);
    return at;
  }
  /// A function all of whose instructions are of line `line`.
  std::uint64_t code(const std::string& name, const std::string& file, std::int32_t line) {
    const auto at = memory.allocate(512);
    memory.put(at + layout.object_type, code_type_);
    memory.put(at + layout.code_name, text(name));
    memory.put(at + layout.code_file, text(file));
    memory.put(at + layout.code_first_line, line);
    memory.put(at + layout.code_lines, bytes_object(lines_of_one()));
    return at;
  }
  std::uint64_t integer(std::uint32_t value) {
    const auto at = memory.allocate(48);
    memory.put(at + layout.object_type, int_type_);
    memory.put<std::int64_t>(at + layout.int_tag, layout.int_has_sign_bits ? 1 << 3 : 1);
    memory.put(at + layout.int_digits, value);
    return at;
  }
  std::uint64_t frame(std::uint64_t code, std::uint64_t previous) {
    const auto at = memory.allocate(1'024);
    memory.put(at + layout.frame_code, code);
    memory.put(at + layout.frame_previous, previous);
    if (layout.instruction_is_index)
      memory.put<std::int32_t>(at + layout.frame_instruction, 2);
    else
      memory.put(at + layout.frame_instruction, code + layout.code_instructions + 4);
    return at;
  }
  std::uint64_t tuple(const std::vector<std::uint64_t>& items) {
    const auto at = memory.allocate(layout.tuple_items + 8 * items.size());
    memory.put<std::int64_t>(at + layout.tuple_size, static_cast<std::int64_t>(items.size()));
    for (std::size_t n = 0; n < items.size(); ++n)
      memory.put(at + layout.tuple_items + 8 * n, items[n]);
    return at;
  }
  /// The newest comes first in the list.
  std::uint64_t thread(std::uint64_t handle, std::uint64_t native, std::uint64_t innermost) {
    const auto at = memory.allocate(512);
    memory.put(at + layout.thread_interpreter, interpreter);
    memory.put(at + layout.thread_id, handle);
    if (layout.thread_native_id != python_layout::none)
      memory.put(at + layout.thread_native_id, native);
    auto frame_at = innermost;
    if (layout.thread_frame_within != python_layout::none) {
      frame_at = memory.allocate(64);
      memory.put(frame_at + layout.thread_frame_within, innermost);
    }
    memory.put(at + layout.thread_frame, frame_at);
    memory.put(at + layout.thread_next, first_);
    first_ = at;
    memory.put(interpreter + layout.interpreter_threads, at);
    return at;
  }
  void give_lock(std::uint64_t thread) {
    if (layout.running_thread != python_layout::none) {
      memory.put(runtime + layout.running_thread, thread);
    } else {
      memory.put(lock_ + layout.lock_holder, thread);
      memory.put<std::int32_t>(lock_ + layout.lock_taken, 1);
    }
  }

  python_layout layout;
  fake_memory memory;
  std::uint64_t runtime = 0, interpreter = 0;

 private:
  std::uint64_t type_named(const std::string& name) {
    const auto characters = memory.allocate(name.size() + 1);
    memory.put_bytes(characters, name);
    const auto at = memory.allocate(64);
    memory.put(at + layout.type_name, characters);
    return at;
  }
  std::uint64_t bytes_object(const std::string& value) {
    const auto at = memory.allocate(layout.bytes_data + value.size());
    memory.put<std::int64_t>(at + layout.bytes_size, static_cast<std::int64_t>(value.size()));
    memory.put_bytes(at + layout.bytes_data, value);
    return at;
  }
  std::string lines_of_one() const {
    switch (layout.lines) {
    case line_table::pairs:
      return {};
    case line_table::ranges:
      return {'\x10', '\0'};
    case line_table::entries:
      return {'\xef', '\0'}; // without columns, eight units, no step
    }
    return {};
  }

  std::uint64_t code_type_ = 0, int_type_ = 0, lock_ = 0, first_ = 0;
};

/// Two threads: `waits` in `worker.py`, which `run` of `main.py` called, and a worker of a data
/// loader.
inline fake_python two_threads(std::uint32_t minor) {
  fake_python python(minor);
  const auto run = python.frame(python.code("run", "main.py", 10), 0);
  const auto waits = python.frame(python.code("waits", "worker.py", 20), run);
  const auto loop_code = python.code("_worker_loop", "/x/torch/utils/data/_utils/worker.py", 30);
  python.memory.put(loop_code + python.layout.code_variables,
                    python.tuple({python.text("dataset"), python.text("worker_id")}));
  const auto loop = python.frame(loop_code, 0);
  python.memory.put(loop + python.layout.frame_locals + 8, python.integer(7));
  python.give_lock(python.thread(0x7000, 101, waits));
  python.thread(0x8000, 102, loop);
  return python;
}

} // namespace troupe::os
