#include "diag/stacks/xpu_timer_file.hpp"

#include "diag/stacks/limits.hpp"

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <unordered_map>
#include <utility>

/// The numbers of the fields are those of xpu_timer/protos/hosting_service.proto.
namespace troupe::diag {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::size_t name_length = 22; // 00003-00008.stacktrace

std::string_view text_of(const protozero::data_view& view) {
  return {view.data(), view.size()};
}

bool holds_bytes(const pbf_reader& at) {
  return at.wire_type() == pbf_wire_type::length_delimited;
}
bool holds_number(const pbf_reader& at) {
  return at.wire_type() == pbf_wire_type::varint;
}

/// What xpu_timer writes where it knows nothing.
std::string known(std::string_view name) {
  return name == "??" || name == "unknown" || name == "Unknown" ? std::string() : std::string(name);
}

/// "train.py:121" is a file and a line.
void set_source(stack_frame& f, std::string_view place) {
  const auto colon = place.rfind(':');
  const auto* end = place.data() + place.size();
  if (colon != std::string_view::npos && colon + 1 < place.size()) {
    std::uint32_t line = 0;
    const auto [stopped, wrong] = std::from_chars(place.data() + colon + 1, end, line);
    if (wrong == std::errc() && stopped == end) {
      f.line = line;
      place = place.substr(0, colon);
    }
  }
  f.source = known(place);
}

/// PySpyFrame and PstackFrame alike: function 1, file 2.
stack_frame read_frame(pbf_reader message) {
  stack_frame f;
  while (message.next()) {
    if (message.tag() == 1 && holds_bytes(message))
      f.function = known(text_of(message.get_view()));
    else if (message.tag() == 2 && holds_bytes(message))
      set_source(f, text_of(message.get_view()));
    else
      message.skip();
  }
  return f;
}

struct thread_fields {
  std::uint32_t id, name, gil, frames; ///< 0: it has none
};
constexpr thread_fields pstack_fields{1, 2, 0, 3};
constexpr thread_fields pyspy_fields{4, 3, 6, 7};

/// Of one file, as far as it was read.
struct reading {
  process_stacks& out;
  std::unordered_map<std::uint64_t, std::size_t> by_id; ///< places in out.threads
  std::size_t frames = 0;
  std::string state;

  void add_frame(std::vector<stack_frame>& stack, pbf_reader message) {
    if (++frames <= limits::process_frames_max)
      stack.push_back(read_frame(message));
  }

  /// gdb and py-spy name the same threads by the kernel's numbers.
  void add(thread_stacks t, std::vector<stack_frame> thread_stacks::*which) {
    const auto known_at = t.id == 0 ? by_id.end() : by_id.find(t.id);
    if (known_at != by_id.end() && (out.threads[known_at->second].*which).empty()) {
      auto& there = out.threads[known_at->second];
      there.*which = std::move(t.*which);
      there.holds_gil = there.holds_gil || t.holds_gil;
      return;
    }
    if (out.threads.size() >= limits::process_threads_max)
      throw protozero::invalid_length_exception();
    by_id.emplace(t.id, out.threads.size());
    out.threads.push_back(std::move(t));
  }

  void read_thread(pbf_reader message, const thread_fields& fields,
                   std::vector<stack_frame> thread_stacks::*which) {
    thread_stacks t;
    while (message.next()) {
      const auto tag = message.tag();
      if (tag == fields.id && holds_number(message))
        t.id = message.get_uint64();
      else if (tag == fields.name && holds_bytes(message))
        t.name = known(text_of(message.get_view()));
      else if (tag == fields.gil && holds_number(message))
        t.holds_gil = message.get_bool();
      else if (tag == fields.frames && holds_bytes(message))
        add_frame(t.*which, message.get_message());
      else
        message.skip();
    }
    add(std::move(t), which);
  }

  /// What a tool said on its stderr: the reason why its stacks are missing.
  void add_missing(const char* tool, std::string_view said) {
    while (!said.empty() && (said.back() == '\n' || said.back() == ' '))
      said.remove_suffix(1);
    const auto last = said.substr(said.rfind('\n') + 1);
    if (!last.empty())
      out.missing.push_back(fmt::format("{}: {}", tool, last));
  }

  void read(pbf_reader file) {
    while (file.next()) {
      const auto tag = file.tag();
      const bool bytes = holds_bytes(file);
      if (tag == 3 && holds_number(file))
        out.pid = file.get_uint32();
      else if (tag == 1 && bytes)
        read_thread(file.get_message(), pstack_fields, &thread_stacks::native);
      else if (tag == 2 && bytes)
        read_thread(file.get_message(), pyspy_fields, &thread_stacks::python);
      else if (tag == 6 && bytes)
        add_missing("pstack", text_of(file.get_view()));
      else if (tag == 8 && bytes)
        add_missing("py-spy", text_of(file.get_view()));
      else if (tag == 11 && bytes)
        state = file.get_string();
      else
        file.skip();
    }
  }

  void finish() {
    const auto letter = state.empty() ? '?' : state.front();
    for (auto& t : out.threads)
      t.state = letter;
    if (frames > limits::process_frames_max)
      out.missing.push_back(fmt::format("{} frames are left out: a process may have {}",
                                        frames - limits::process_frames_max,
                                        limits::process_frames_max));
    if (!out.threads.empty())
      return;
    out.threads.emplace_back();
    out.threads.back().state = letter;
    out.missing.push_back("xpu_timer has read no stacks of it; its state was " +
                          (state.empty() ? "unknown" : state));
  }
};

} // namespace

std::optional<dump_name> xpu_timer_named(std::string_view file) {
  dump_name of;
  const auto number = [file](std::size_t at, std::uint32_t& into) {
    const auto* end = file.data() + at + 5;
    const auto [stopped, wrong] = std::from_chars(file.data() + at, end, into);
    return wrong == std::errc() && stopped == end;
  };
  if (file.size() != name_length || file[5] != '-' || file.substr(11) != ".stacktrace" ||
      !number(0, of.rank) || !number(6, of.world_size) || of.rank >= of.world_size)
    return std::nullopt;
  return of;
}

result<void> read_xpu_timer(std::string_view bytes, process_stacks& out) {
  reading r{out, {}, 0, {}};
  std::string wrong = bytes.empty() ? "it is empty" : "";
  try {
    r.read(pbf_reader(bytes.data(), bytes.size()));
  } catch (const protozero::exception& e) {
    wrong = fmt::format("it is cut off or no file of xpu_timer ({})", e.what());
  }
  if (wrong.empty() || !out.threads.empty())
    r.finish();
  if (wrong.empty())
    return {};
  return failure(errc::invalid,
                 fmt::format("{}; {} threads were read before that", wrong, out.threads.size()));
}

} // namespace troupe::diag
