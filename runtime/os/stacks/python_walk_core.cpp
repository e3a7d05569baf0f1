#include "runtime/os/stacks/python_walk_core.hpp"

#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/python_objects_core.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace troupe::os {

namespace {

constexpr std::uint64_t tag_bits = 3; ///< of references on the stack of 3.14

class walk {
 public:
  walk(memory_port& memory, std::uint64_t runtime, const python_layout& layout)
      : memory_(memory), runtime_(runtime), l_(layout), objects_(memory, layout) {}

  python_walk run() {
    std::uint64_t interpreter = 0;
    if (!read_value(memory_, runtime_ + l_.interpreters, interpreter)) {
      done_.missing.push_back("the memory of the process cannot be read");
      return std::move(done_);
    }
    std::uint64_t finalizing = 0;
    done_.is_ending = l_.finalizing != python_layout::none &&
                      read_value(memory_, runtime_ + l_.finalizing, finalizing) && finalizing != 0;
    if (interpreter == 0)
      done_.missing.push_back("Python has not begun or has ended");
    for (std::size_t n = 0; interpreter != 0; ++n) {
      if (n == limits::stacks_interpreters_max) {
        done_.missing.push_back(
            fmt::format("only {} interpreters were read", limits::stacks_interpreters_max));
        break;
      }
      threads_of(interpreter);
      if (!read_value(memory_, interpreter + l_.interpreter_next, interpreter))
        break;
    }
    return std::move(done_);
  }

 private:
  void threads_of(std::uint64_t interpreter) {
    const auto holder = holder_of(interpreter);
    std::uint64_t thread = 0;
    if (!read_value(memory_, interpreter + l_.interpreter_threads, thread)) {
      done_.missing.push_back("the list of Python's threads cannot be read");
      return;
    }
    while (thread != 0) {
      std::uint64_t next = 0, belongs_to = 0;
      if (!seen_.insert(thread).second ||
          !read_value(memory_, thread + l_.thread_interpreter, belongs_to) ||
          !read_value(memory_, thread + l_.thread_next, next) || belongs_to != interpreter) {
        done_.missing.push_back("the list of Python's threads changed while it was read");
        return;
      }
      if (done_.threads.size() == limits::stacks_threads_max) {
        done_.missing.push_back(
            fmt::format("only {} threads of Python were read", limits::stacks_threads_max));
        return;
      }
      done_.threads.push_back(read_thread(thread));
      done_.threads.back().holds_lock = thread == holder;
      thread = next;
    }
  }

  /// The thread that has the global interpreter lock; 0: none, or unknown.
  std::uint64_t holder_of(std::uint64_t interpreter) {
    std::uint64_t holder = 0;
    if (l_.has_no_lock)
      return 0;
    if (l_.running_thread != python_layout::none) {
      (void)read_value(memory_, runtime_ + l_.running_thread, holder);
      return holder;
    }
    std::uint64_t lock = interpreter;
    if (l_.interpreter_lock != python_layout::none &&
        !read_value(memory_, interpreter + l_.interpreter_lock, lock))
      return 0;
    std::int32_t is_taken = 0;
    if (!read_value(memory_, lock + l_.lock_taken, is_taken) || is_taken != 1 ||
        !read_value(memory_, lock + l_.lock_holder, holder))
      return 0;
    return holder;
  }

  python_thread read_thread(std::uint64_t thread) {
    python_thread read;
    (void)read_value(memory_, thread + l_.thread_id, read.handle);
    if (l_.thread_native_id != python_layout::none)
      (void)read_value(memory_, thread + l_.thread_native_id, read.native_id);
    for (int n = 0; n < limits::stacks_tries; ++n) {
      read.frames.clear();
      read.missing.clear();
      if (read_frames(thread, read))
        break;
      memory_.refresh();
    }
    frames_ += read.frames.size();
    return read;
  }

  std::uint64_t innermost(std::uint64_t thread) {
    std::uint64_t frame = 0;
    if (!read_value(memory_, thread + l_.thread_frame, frame) || frame == 0)
      return 0;
    if (l_.thread_frame_within != python_layout::none &&
        !read_value(memory_, frame + l_.thread_frame_within, frame))
      return 0;
    return frame;
  }

  /// False: what was read is not whole, and another try may be better.
  bool read_frames(std::uint64_t thread, python_thread& into) {
    auto frame = innermost(thread);
    for (std::size_t n = 0; frame != 0; ++n) {
      if (n == limits::stacks_frames_max || frames_ + n >= limits::stacks_frames_in_all_max) {
        into.missing = fmt::format("only the innermost {} Python frames were read", n);
        return true;
      }
      std::uint64_t previous = 0;
      if (!read_value(memory_, frame + l_.frame_previous, previous) || !read_frame(frame, into)) {
        into.missing = "its Python stack changed while it was read";
        return false;
      }
      frame = previous;
    }
    return true;
  }

  bool read_frame(std::uint64_t frame, python_thread& into) {
    std::uint8_t owner = 0;
    if (l_.frame_owner != python_layout::none) {
      if (!read_value(memory_, frame + l_.frame_owner, owner))
        return false;
      if (l_.owners != 0 && owner >= l_.owners)
        return true; // where C calls Python
    }
    std::uint64_t code = 0;
    if (!read_value(memory_, frame + l_.frame_code, code))
      return false;
    code &= ~tag_bits;
    if (!objects_.is_a(code, "code"))
      return false;
    diag::stack_frame f;
    std::uint64_t name = 0, file = 0;
    if (!read_value(memory_, code + l_.code_name, name) ||
        !read_value(memory_, code + l_.code_file, file))
      return false;
    const auto function = objects_.text(name, limits::stacks_name_max);
    const auto source = objects_.text(file, limits::stacks_path_max);
    if (!function || !source)
      return false;
    f.function = *function;
    f.source = *source;
    const auto at = instruction_of(frame, code);
    if (into.frames.empty())
      into.position = at ? static_cast<std::uint64_t>(*at) : 0;
    f.line = line_of(code, at);
    if (f.function == "_worker_loop")
      name_loader(frame, code, f.source, into);
    into.frames.push_back(std::move(f));
    return true;
  }

  std::uint32_t line_of(std::uint64_t code, std::optional<std::int64_t> at) {
    std::int32_t first = 0;
    std::uint64_t table = 0;
    if (!read_value(memory_, code + l_.code_first_line, first) || first < 0 ||
        !read_value(memory_, code + l_.code_lines, table))
      return 0;
    const auto lines = objects_.bytes(table, limits::stacks_line_table_max);
    return lines && at ? line_at(l_.lines, *lines, static_cast<std::uint32_t>(first), *at) : 0;
  }

  std::optional<std::int64_t> instruction_of(std::uint64_t frame, std::uint64_t code) {
    if (l_.instruction_is_index) {
      std::int32_t index = 0;
      if (!read_value(memory_, frame + l_.frame_instruction, index))
        return std::nullopt;
      return index * static_cast<std::int64_t>(l_.index_scale);
    }
    std::uint64_t at = 0;
    if (!read_value(memory_, frame + l_.frame_instruction, at))
      return std::nullopt;
    return static_cast<std::int64_t>(at - (code + l_.code_instructions));
  }

  void name_loader(std::uint64_t frame, std::uint64_t code, std::string_view source,
                   python_thread& into) {
    constexpr std::string_view ending = "data/_utils/worker.py";
    if (source.size() < ending.size() || source.substr(source.size() - ending.size()) != ending)
      return;
    into.is_loader = true;
    std::uint64_t names = 0, value = 0;
    if (!read_value(memory_, code + l_.code_variables, names))
      return;
    const auto place = objects_.place_of(names, "worker_id");
    if (place && read_value(memory_, frame + l_.frame_locals + 8 * *place, value))
      into.loader_worker = objects_.integer(value & ~tag_bits);
  }

  memory_port& memory_;
  const std::uint64_t runtime_;
  const python_layout& l_;
  python_objects objects_;
  python_walk done_;
  std::set<std::uint64_t> seen_; ///< threads: their list may have become a ring
  std::size_t frames_ = 0;
};

} // namespace

python_walk walk_python(memory_port& memory, std::uint64_t runtime, const python_layout& layout) {
  return walk(memory, runtime, layout).run();
}

} // namespace troupe::os
