#include "trace/core/text.hpp"

#include <cstdio>
#include <cstring>

namespace troupe::trace {

void text::add(const char* format, ...) {
  if (full_)
    return;
  va_list arguments;
  va_start(arguments, format);
  const auto wanted = std::vsnprintf(memory_ + used_, bytes_ - used_, format, arguments);
  va_end(arguments);
  if (wanted < 0 || static_cast<std::size_t>(wanted) >= bytes_ - used_)
    full_ = true;
  else
    used_ += static_cast<std::size_t>(wanted);
}

void text::add(std::string_view words) {
  if (full_ || words.size() >= bytes_ - used_) {
    full_ = true;
    return;
  }
  std::memcpy(memory_ + used_, words.data(), words.size());
  used_ += words.size();
}

void text::end_with(std::string_view words) {
  if (words.size() >= reserved_)
    return;
  std::memcpy(memory_ + used_, words.data(), words.size());
  used_ += words.size();
}

void text::add_escaped(std::string_view words) {
  for (const char c : words) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      add("\\%c", c);
    else if (c == '\n')
      add(std::string_view("\\n"));
    else if (byte < 0x20 || byte == 0x7f)
      add(std::string_view("?"));
    else
      add(std::string_view(&c, 1));
  }
}

} // namespace troupe::trace
