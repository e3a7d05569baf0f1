#include "runtime/os/stacks/python_layout_core.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

namespace troupe::os {

namespace {

constexpr std::string_view cookie = "xdebugpy";

// Measured with offsetof() against the headers of 3.8.2, 3.9.2, 3.10.4, 3.11.2 and 3.12.3.

python_layout up_to_3_10(python_release release) {
  python_layout l;
  l.finalizing = 16;
  l.interpreters = 32;
  l.running_thread = release.minor == 8 ? 1'368 : 568;
  l.interpreter_next = 0;
  l.interpreter_threads = 8;
  l.thread_next = 8;
  l.thread_interpreter = 16;
  l.thread_frame = 24;
  l.thread_id = 176;
  l.frame_previous = 24;
  l.frame_code = 32;
  l.frame_instruction = release.minor == 10 ? 96 : 104;
  l.frame_locals = release.minor == 10 ? 352 : 360;
  l.code_first_line = 40;
  l.code_variables = 72;
  l.code_file = 104;
  l.code_name = 112;
  l.code_lines = 120;
  l.lines = release.minor == 10 ? line_table::ranges : line_table::pairs;
  l.instruction_is_index = true;
  l.index_scale = release.minor == 10 ? 2 : 1;
  return l;
}

/// What 3.11 and 3.12 have in common.
python_layout from_3_11() {
  python_layout l;
  l.finalizing = 24;
  l.interpreters = 40;
  l.interpreter_next = 0;
  l.thread_next = 8;
  l.thread_interpreter = 16;
  l.thread_frame = 56;
  l.frame_instruction = 56;
  l.frame_locals = 72;
  l.code_variables = 96;
  l.code_file = 112;
  l.code_name = 128; // qualified
  l.code_lines = 136;
  return l;
}

python_layout of_3_11() {
  auto l = from_3_11();
  l.running_thread = 576;
  l.interpreter_threads = 16;
  l.thread_frame_within = 8;
  l.thread_id = 152;
  l.thread_native_id = 160;
  l.frame_previous = 48;
  l.frame_code = 32;
  l.frame_owner = 69;
  l.owners = 3;
  l.code_first_line = 72;
  l.code_instructions = 184;
  return l;
}

python_layout of_3_12() {
  auto l = from_3_11();
  l.interpreter_threads = 72;
  l.interpreter_lock = 384;
  l.lock_holder = 8;
  l.lock_taken = 16;
  l.thread_frame_within = 0;
  l.thread_id = 136;
  l.thread_native_id = 144;
  l.frame_previous = 8;
  l.frame_code = 0;
  l.frame_owner = 70;
  l.owners = 3;
  l.code_first_line = 68;
  l.code_instructions = 192;
  l.text_ascii = 40;
  l.text_wide = 56;
  l.int_has_sign_bits = true;
  return l;
}

/// A field of the layout, and where its offset stands in the description of 3.13 and of 3.14.
struct described {
  std::uint32_t python_layout::*field;
  std::uint32_t in_3_13, in_3_14;
};

constexpr std::array fields{
    described{&python_layout::finalizing, 32, 32},
    described{&python_layout::interpreters, 40, 40},
    described{&python_layout::interpreter_next, 64, 64},
    described{&python_layout::interpreter_threads, 72, 72},
    described{&python_layout::lock_taken, 136, 144},
    described{&python_layout::lock_holder, 144, 152},
    described{&python_layout::thread_next, 168, 192},
    described{&python_layout::thread_interpreter, 176, 200},
    described{&python_layout::thread_frame, 184, 208},
    described{&python_layout::thread_id, 192, 216},
    described{&python_layout::thread_native_id, 200, 224},
    described{&python_layout::frame_previous, 232, 256},
    described{&python_layout::frame_code, 240, 264},
    described{&python_layout::frame_instruction, 248, 272},
    described{&python_layout::frame_locals, 256, 280},
    described{&python_layout::frame_owner, 264, 288},
    described{&python_layout::code_file, 280, 320},
    described{&python_layout::code_name, 296, 336}, // qualified
    described{&python_layout::code_lines, 304, 344},
    described{&python_layout::code_first_line, 312, 352},
    described{&python_layout::code_variables, 328, 368},
    described{&python_layout::code_instructions, 344, 384},
    described{&python_layout::object_type, 360, 408},
    described{&python_layout::type_name, 376, 424},
    described{&python_layout::tuple_items, 408, 456},
    described{&python_layout::tuple_size, 416, 464},
    described{&python_layout::int_tag, 496, 576},
    described{&python_layout::int_digits, 504, 584},
    described{&python_layout::bytes_size, 520, 600},
    described{&python_layout::bytes_data, 528, 608},
    described{&python_layout::text_state, 544, 624},
    described{&python_layout::text_length, 552, 632},
    described{&python_layout::text_ascii, 560, 640},
};

constexpr std::size_t description_size = 760; // of 3.14, the larger one
/// No structure of an interpreter is nearly as large.
constexpr std::uint64_t offset_max = 16u << 20;

std::uint64_t word(const std::array<char, description_size>& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

} // namespace

std::string to_string(const python_release& r) {
  return r.patch ? fmt::format("3.{}.{}", r.minor, *r.patch) : fmt::format("3.{}", r.minor);
}

std::optional<std::uint32_t> minor_in_name(std::string_view name) {
  constexpr std::string_view stem = "python3.";
  const auto at = name.rfind(stem);
  if (at == name.npos)
    return std::nullopt;
  std::uint32_t minor = 0;
  const auto* from = name.data() + at + stem.size();
  const auto read = std::from_chars(from, name.data() + name.size(), minor);
  return read.ec == std::errc() && read.ptr - from <= 2 ? std::optional(minor) : std::nullopt;
}

std::optional<python_release> release_in_constant(std::string_view text, char before) {
  constexpr std::string_view stem = "3.";
  const bool goes_on = before == '.' || (before >= '0' && before <= '9');
  if (goes_on || text.size() > 16 || text.substr(0, stem.size()) != stem)
    return std::nullopt;
  const auto* end = text.data() + text.size();
  python_release release;
  std::uint32_t patch = 0;
  const auto minor = std::from_chars(text.data() + stem.size(), end, release.minor);
  if (minor.ec != std::errc() || minor.ptr == end || *minor.ptr != '.')
    return std::nullopt;
  const auto rest = std::from_chars(minor.ptr + 1, end, patch);
  // "3.9.0rc1+" is one; "3.9.2/lib" is not.
  if (rest.ec != std::errc() ||
      std::string_view(rest.ptr, static_cast<std::size_t>(end - rest.ptr))
              .find_first_not_of("0123456789abcr+") != std::string_view::npos)
    return std::nullopt;
  release.patch = patch;
  return release;
}

result<python_layout> layout_of(python_release release) {
  switch (release.minor) {
  case 8:
  case 9:
  case 10:
    return up_to_3_10(release);
  case 11:
    return of_3_11();
  case 12:
    return of_3_12();
  default:
    return failure(errc::invalid, fmt::format("Python 3.{} is none of those whose stacks can be "
                                              "read (3.8 to 3.14)",
                                              release.minor));
  }
}

bool is_described(memory_port& memory, std::uint64_t runtime) {
  std::array<char, 8> begin{};
  return memory.read(runtime, begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == cookie;
}

result<described_python> layout_at(memory_port& memory, std::uint64_t runtime) {
  std::array<char, description_size> bytes{};
  // That of 3.13 is shorter, and the runtime, of which it is the beginning, is not.
  if (!memory.read(runtime, bytes.data(), bytes.size()))
    return failure(errc::absent, "the runtime of Python cannot be read");
  described_python d;
  const auto version = word(bytes, 8);
  d.release = {static_cast<std::uint32_t>(version >> 16 & 0xff),
               static_cast<std::uint32_t>(version >> 8 & 0xff)};
  if (version >> 24 != 3 || d.release.minor < 13 || d.release.minor > 14)
    return failure(errc::invalid, fmt::format("Python {}.{} is none of those whose stacks can be "
                                              "read (3.8 to 3.14)",
                                              version >> 24 & 0xff, d.release.minor));
  for (const auto& f : fields) {
    const auto offset = word(bytes, d.release.minor == 13 ? f.in_3_13 : f.in_3_14);
    if (offset > offset_max)
      return failure(errc::invalid, "what Python says of its own structures makes no sense");
    d.layout.*f.field = static_cast<std::uint32_t>(offset);
  }
  d.layout.has_no_lock = word(bytes, 16) != 0;
  d.layout.text_wide = d.layout.text_ascii + 16;
  d.layout.int_has_sign_bits = true;
  d.layout.owners = 3;
  return d;
}

} // namespace troupe::os
