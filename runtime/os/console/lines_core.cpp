#include "runtime/os/console/lines_core.hpp"

#include <algorithm>
#include <utility>

namespace troupe::os {

namespace {

/// Finds ends of lines. All that the workers print passes through here.
class end_finder {
 public:
  explicit end_finder(std::string_view block)
      : block_(block), feed_(block.find('\n')), return_(block.find('\r')) {}

  /// The first end at or after `from`; npos if there is none. `from` never decreases.
  // What was found stays found until it is passed: a block of a progress bar is one long row of
  // "\r" without a "\n", and is not searched to its end for each of them.
  std::size_t operator()(std::size_t from) {
    pass(feed_, '\n', from);
    pass(return_, '\r', from);
    return std::min(feed_, return_);
  }

 private:
  void pass(std::size_t& next, char what, std::size_t from) const {
    if (next < from)
      next = block_.find(what, from);
  }

  std::string_view block_;
  std::size_t feed_, return_;
};

} // namespace

constexpr std::string_view time_mark = "${time}";

lines_core::lines_core(std::string prefix, std::vector<std::string> needles, duration bar_every)
    : pattern_(std::move(prefix)), time_at_(pattern_.find(time_mark)), prefix_(pattern_),
      bar_every_(bar_every), needles_(std::move(needles)) {}

void lines_core::set_time(instant now, std::string_view time_of_day) {
  now_ = now;
  if (tells_time())
    prefix_ = pattern_.substr(0, time_at_) + std::string(time_of_day) +
              pattern_.substr(time_at_ + time_mark.size());
}

bool lines_core::too_soon() const {
  return bar_shown_at_ && now_ - *bar_shown_at_ < bar_every_;
}

bool lines_core::has_end(std::string_view bytes) {
  return bytes.find('\n') != std::string_view::npos || bytes.find('\r') != std::string_view::npos;
}

/// What is not taken stays with the caller and is offered again: no bytes are held here, so an
/// unfinished line costs nothing but a second look.
std::size_t lines_core::take(std::string_view block, std::size_t enough, std::string& shown,
                             std::string& kept) {
  std::size_t at = 0;
  // The block before ended between "\r" and "\n"; taken for two ends they would show an empty line.
  if (after_cr_ && !block.empty()) {
    after_cr_ = false;
    if (block.front() == '\n')
      at = 1;
  }
  end_finder end_after(block);
  while (at < block.size() && shown.size() < enough) {
    auto end = end_after(at);
    if (end == std::string_view::npos)
      break;
    const auto text = block.substr(at, end - at);
    const bool is_last = end + 1 == block.size();
    const bool of_a_bar = block[end] == '\r' && (is_last || block[end + 1] != '\n');
    if (of_a_bar && too_soon() && !within_line_ && !wanted(text)) {
      // A "\n" that is still to come would make it a line.
      if (is_last)
        break;
    } else {
      line(text, shown, kept);
      if (of_a_bar)
        bar_shown_at_ = now_;
      // The next byte is not there yet, and the line is shown without waiting for it: a progress
      // bar may print nothing else for a minute.
      after_cr_ = of_a_bar && is_last;
    }
    at = end + (block[end] == '\r' && !of_a_bar ? 2 : 1);
  }
  return at;
}

/// From here on the line holds the console: a line of another stream in between would mix the two,
/// so the relay lets the rest come or ends it.
void lines_core::pass_piece(std::string_view piece, std::string& shown, std::string& kept) {
  begin(piece, shown, kept);
  within_line_ = true;
}

/// The end is made up here, since lines of several ranks share the console and the next one must
/// begin at its beginning.
void lines_core::end(std::string_view rest, std::string& shown, std::string& kept) {
  if (!rest.empty() && rest.back() == '\r')
    rest.remove_suffix(1);
  // With nothing begun there is nothing to end, and an empty line would be one that no rank
  // printed.
  if (within_line_ || !rest.empty())
    line(rest, shown, kept);
}

/// A line, or what is left of one.
void lines_core::line(std::string_view text, std::string& shown, std::string& kept) {
  begin(text, shown, kept);
  shown += '\n';
  if (keeping_)
    kept += '\n';
  within_line_ = false;
}

/// One prefix and one decision for each line, at its first piece: what was shown already cannot be
/// taken back, and half a line kept apart would be of no use.
void lines_core::begin(std::string_view text, std::string& shown, std::string& kept) {
  if (!within_line_) {
    keeping_ = wanted(text);
    shown += prefix_;
    if (keeping_)
      kept += prefix_;
  }
  shown += text;
  if (keeping_)
    kept += text;
}

bool lines_core::wanted(std::string_view text) const {
  return std::any_of(needles_.begin(), needles_.end(), [text](const std::string& needle) {
    return text.find(needle) != std::string_view::npos;
  });
}

} // namespace troupe::os
