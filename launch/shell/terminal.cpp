#include "launch/shell/terminal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::launch {

terminal standard_output() {
  terminal t;
  t.is_one = ::isatty(STDOUT_FILENO) == 1;
  if (!t.is_one)
    return t;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  t.columns = known && size.ws_col > 0 ? size.ws_col : 80;
  t.lines = known && size.ws_row > 0 ? size.ws_row : 24;
  return t;
}

bool wants_colours(const terminal& t, const std::map<std::string, std::string>& environment) {
  const auto value = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  return t.is_one && value("NO_COLOR").empty() && value("TERM") != "dumb";
}

/// A signal may come in the middle: Ctrl-C ends a view, and is no failure to write.
bool print(std::string_view text) {
  if (std::fflush(stdout) != 0)
    return false;
  while (!text.empty()) {
    const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR)
      return false;
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

redrawn_screen::redrawn_screen() {
  (void)print("\x1b[?1049h\x1b[?25l"); // another screen, no cursor
}

redrawn_screen::~redrawn_screen() {
  (void)print("\x1b[?25h\x1b[?1049l");
}

bool redrawn_screen::draw(const std::string& text) const {
  std::string frame = "\x1b[H";
  for (const char c : text)
    if (c == '\n')
      frame += "\x1b[K\r\n";
    else
      frame += c;
  return print(frame + "\x1b[J");
}

} // namespace troupe::launch
