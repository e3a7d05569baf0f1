#include "launch/shell/tree_command.hpp"

#include "launch/shell/columns.hpp"
#include "launch/shell/terminal.hpp"
#include "launch/shell/tree_json.hpp"
#include "launch/shell/tree_lines.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

namespace troupe::launch {

namespace {

using std::chrono::steady_clock;

/// A tree, and when it was answered.
struct answer {
  sup::node_report tree;
  tree_asked how;
  steady_clock::time_point when;
};

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

class tree_view {
 public:
  tree_view(const shell_options& o, std::shared_ptr<ports::transport> transport,
            const ports::endpoint& master, wishes& wants)
      : options_(o), wants_(wants),
        master_(std::move(transport), master, wants.wake, [&wants] { return wants.stop.load(); }),
        colours_(wants_colours(standard_output(), this_machine().environment)) {}

  int once() {
    const auto got = ask();
    if (wants_.stop)
      return exit_success;
    if (!got)
      return report_error(shell_program, got.error().what, exit_failure);
    return print(options_.json ? document(*got) : text(*got, standard_output().columns))
               ? exit_success
               : exit_failure;
  }

  /// Until the person has enough. A master that is away may come back.
  int again_and_again(duration every) {
    std::optional<redrawn_screen> screen;
    if (!options_.json && standard_output().is_one)
      screen.emplace();
    while (true) {
      const auto next = steady_clock::now() + every;
      auto got = ask();
      if (wants_.stop)
        return exit_success;
      take(std::move(got));
      do {
        wants_.redraw = false;
        if (!show(screen))
          return exit_failure;
        wants_.wake->wait_until(next, [this] { return wants_.stop || wants_.redraw; });
      } while (wants_.redraw && !wants_.stop && screen);
      if (wants_.stop)
        return exit_success;
    }
  }

 private:
  /// The tree as far as the person wants to see it.
  result<answer> ask() {
    const auto at = utc_now();
    const auto began = steady_clock::now();
    const auto where = ports::to_string(master_.master());
    auto tree = master_.ask_tree(options_.node);
    if (!tree)
      return failure(tree.error().code,
                     fmt::format("the master at {} was not asked: {}", where, tree.error().what));
    const auto now = steady_clock::now();
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - began).count();
    auto seen = filtered(*tree, {options_.node, options_.depth, false});
    if (!seen)
      return failure(errc::invalid,
                     fmt::format("the job has no node '{}'; without --node, the tree shows all",
                                 options_.node));
    return answer{std::move(*seen), {where, at, static_cast<std::uint64_t>(took)}, now};
  }

  std::optional<sup::node_report> wanted_rows(const answer& a) const {
    return options_.troubled ? filtered(a.tree, {{}, {}, true}) : std::optional(a.tree);
  }

  std::string text(const answer& a, std::size_t columns) const {
    const auto rows = wanted_rows(a);
    if (!rows)
      return fmt::format("no trouble in {} rows\n", count(a.tree).rows);
    return painted(lay_out(*rows, columns), colours_);
  }

  std::string document(const answer& a) const { return tree_json(wanted_rows(a), a.how) + "\n"; }

  void take(result<answer> got) {
    if (got) {
      last_ = std::move(*got);
      away_since_.reset();
      return;
    }
    if (!away_since_)
      away_since_ = steady_clock::now();
    why_away_ = got.error().what;
  }

  bool show(const std::optional<redrawn_screen>& screen) {
    if (options_.json)
      return print(away_since_ ? tree_error_json(why_away_, {ports::to_string(master_.master()),
                                                             utc_now(), 0}) +
                                     "\n"
                               : document(*last_));
    const auto out = standard_output();
    auto page = cut_to(head_line(), out.columns == 0 ? std::string::npos : out.columns) + "\n";
    if (last_)
      page += text(*last_, out.columns);
    return screen ? screen->draw(first_lines(page, out.lines)) : print(page + "\n");
  }

  std::string head_line() const {
    const auto clock = utc_now();
    if (!away_since_) {
      const auto all = count(last_->tree);
      return fmt::format("{}  {}  {} rows, {} troubled", clock, last_->how.master, all.rows,
                         all.troubled);
    }
    const auto now = steady_clock::now();
    return fmt::format("{}  away for {}, asking again{}: {}", clock, short_time(now - *away_since_),
                       last_ ? fmt::format(" (below: {} ago)", short_time(now - last_->when))
                             : std::string(),
                       os::printable(why_away_));
  }

  /// As many as the terminal has; the last one says what is missing.
  static std::string first_lines(const std::string& page, std::size_t lines) {
    const auto all = static_cast<std::size_t>(std::count(page.begin(), page.end(), '\n'));
    if (all < lines || lines < 2)
      return page;
    std::size_t end = 0;
    for (std::size_t i = 0; i + 2 < lines; ++i)
      end = page.find('\n', end) + 1;
    return page.substr(0, end) +
           fmt::format("… {} more (--troubled, --node, --depth show less)\n", all - (lines - 2));
  }

  const shell_options& options_;
  wishes& wants_;
  inquiry master_;
  const bool colours_;
  std::optional<answer> last_;
  std::optional<steady_clock::time_point> away_since_;
  std::string why_away_;
};

} // namespace

int show_tree(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
              const ports::endpoint& master, wishes& wants) {
  tree_view view(o, transport, master, wants);
  return o.watch ? view.again_and_again(*o.watch) : view.once();
}

} // namespace troupe::launch
