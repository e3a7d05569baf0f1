#include "launch/worker/log_tail.hpp"

#include "messages/limits.hpp"
#include "runtime/os/log/printable.hpp"

#include <algorithm>

namespace troupe::launch {

std::string last_lines(const std::string& end_of_file) {
  // What is not UTF-8 becomes longer by this.
  auto text = os::valid_utf8(end_of_file);
  std::replace(text.begin(), text.end(), '\0', ' ');
  if (text.size() <= limits::log_tail_max)
    return text;
  auto begin = text.size() - limits::log_tail_max;
  const auto line_end = text.find('\n', begin - 1);
  if (line_end + 1 < text.size() && line_end != std::string::npos)
    return text.substr(line_end + 1);
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80)
    ++begin;
  return text.substr(begin);
}

} // namespace troupe::launch
