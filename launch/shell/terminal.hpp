#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

/// What is known of the program's standard output.
namespace troupe::launch {

inline constexpr auto shell_program = "actor-shell";

struct terminal {
  bool is_one = false;
  /// 0: unlimited.
  std::size_t columns = 0;
  std::size_t lines = 0;
};

terminal standard_output();

/// Colours are for terminals that have them; NO_COLOR (any value but an empty one) says no.
bool wants_colours(const terminal& t, const std::map<std::string, std::string>& environment);

/// False if the output takes nothing any more.
bool print(std::string_view text);

/// A part of the terminal that is drawn over again, without scrolling. What was on the terminal
/// before is there again at the end.
class redrawn_screen {
 public:
  redrawn_screen();
  ~redrawn_screen();
  redrawn_screen(const redrawn_screen&) = delete;
  redrawn_screen& operator=(const redrawn_screen&) = delete;

  /// Every line of `text` ends with a line end.
  bool draw(const std::string& text) const;
};

} // namespace troupe::launch
