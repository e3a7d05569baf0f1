#include "launch/worker/log_tail.hpp"

#include "messages/limits.hpp"
#include "runtime/os/log/printable.hpp"

#include <algorithm>
#include <sstream>

namespace troupe::launch {

namespace {

/// UTF-8 stays whole.
std::string cut(std::string line, std::size_t most) {
  auto size = std::min(line.size(), most);
  while (size > 0 && size < line.size() && (line[size] & 0xc0) == 0x80)
    --size;
  line.resize(size);
  return line;
}

} // namespace

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

std::string exception_in(const std::string& log_tail) {
  const auto traceback = log_tail.rfind("Traceback (most recent call last)");
  if (traceback == std::string::npos)
    return {};
  // torch.distributed puts "[rank3]: " before each line.
  const auto line_begin = traceback == 0 ? 0 : log_tail.rfind('\n', traceback - 1) + 1;
  const auto prefix = log_tail.substr(line_begin, traceback - line_begin);
  std::istringstream lines(log_tail.substr(traceback));
  std::string line;
  std::getline(lines, line);
  // The frames are indented. What follows them is the exception; its text may have more lines.
  while (std::getline(lines, line)) {
    if (line.compare(0, prefix.size(), prefix) == 0)
      line.erase(0, prefix.size());
    if (!line.empty() && line.front() != ' ')
      return cut(std::move(line), limits::matched_line_max);
  }
  return {};
}

} // namespace troupe::launch
