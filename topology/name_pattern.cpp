#include "topology/name_pattern.hpp"

#include "topology/limits.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::topology {

namespace {

using characters = std::bitset<256>;

characters range(char first, char last) {
  characters set;
  for (auto one = static_cast<unsigned char>(first); one < static_cast<unsigned char>(last); ++one)
    set.set(one);
  return set.set(static_cast<unsigned char>(last));
}

characters only(char one) {
  return range(one, one);
}

bool is_digit(char one) {
  return one >= '0' && one <= '9';
}

bool is_letter(char one) {
  return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
}

/// What is behind a backslash; nothing: it is not known.
std::optional<characters> escaped(char one) {
  const auto words = range('0', '9') | range('a', 'z') | range('A', 'Z') | only('_');
  const auto white = only(' ') | only('\t') | only('\n') | only('\r') | only('\f');
  switch (one) {
  case 'd':
    return range('0', '9');
  case 'D':
    return ~range('0', '9');
  case 'w':
    return words;
  case 'W':
    return ~words;
  case 's':
    return white;
  case 'S':
    return ~white;
  default:
    if (is_digit(one) || is_letter(one))
      return std::nullopt;
    return only(one);
  }
}

} // namespace

/// Reads a pattern into a tree, and writes the tree as steps.
///
/// A tree first, since what is repeated is written several times.
class name_pattern_reader {
 public:
  explicit name_pattern_reader(std::string_view pattern) : pattern_(pattern) {}

  result<name_pattern> read() {
    const auto all = either();
    if (!wrong_ && !at_end())
      refuse("a ')' has no '('");
    write(*all);
    add({step::kind::fits, 0, 0});
    if (wrong_)
      return tl::make_unexpected(*wrong_);
    return std::move(made_);
  }

 private:
  using step = name_pattern::step;

  struct part {
    enum class kind : std::uint8_t { one_of, begin, end, in_turn, either, repeated };
    kind is = kind::in_turn;
    characters set;
    std::vector<std::unique_ptr<part>> inside;
    std::uint32_t least = 0;
    std::optional<std::uint32_t> most; ///< nothing: any number
  };
  using part_ptr = std::unique_ptr<part>;

  // ---- reading ----

  part_ptr either() {
    auto all = made(part::kind::either);
    all->inside.push_back(in_turn());
    while (take('|'))
      all->inside.push_back(in_turn());
    return all;
  }

  part_ptr in_turn() {
    auto all = made(part::kind::in_turn);
    while (!wrong_ && !at_end() && next() != '|' && next() != ')')
      all->inside.push_back(repeated(one()));
    return all;
  }

  part_ptr one() {
    const auto first = pattern_[at_++];
    switch (first) {
    case '(':
      return group();
    case '[':
      return set_of(a_class());
    case '.':
      return set_of(~only('\n'));
    case '^':
      return made(part::kind::begin);
    case '$':
      return made(part::kind::end);
    case '\\':
      return set_of(behind_backslash());
    case '*':
    case '+':
    case '?':
      refuse(fmt::format("'{}' repeats nothing", first));
      return made(part::kind::in_turn);
    default:
      return set_of(only(first));
    }
  }

  part_ptr group() {
    if (take('?') && !take(':'))
      refuse("of groups with '?' only (?:…) is known");
    auto inside = either();
    if (!wrong_ && !take(')'))
      refuse("a '(' has no ')'");
    return inside;
  }

  characters behind_backslash() {
    if (at_end()) {
      refuse("it ends in a backslash");
      return {};
    }
    const auto which = pattern_[at_++];
    if (const auto set = escaped(which))
      return *set;
    refuse(fmt::format("'\\{}' is not known", which));
    return {};
  }

  characters a_class() {
    const bool others = take('^');
    characters set;
    bool first = true;
    while (!wrong_ && (first || at_end() || next() != ']')) {
      if (at_end()) {
        refuse("a '[' has no ']'");
        break;
      }
      add_to_class(set);
      first = false;
    }
    if (!wrong_)
      ++at_;
    return others ? ~set : set;
  }

  void add_to_class(characters& set) {
    const auto from = pattern_[at_++];
    if (from == '[' && !at_end() && next() == ':')
      return refuse("'[:' is not known");
    if (from == '\\') {
      set |= behind_backslash();
      return;
    }
    if (at_ + 1 >= pattern_.size() || next() != '-' || pattern_[at_ + 1] == ']') {
      set |= only(from);
      return;
    }
    const auto to = pattern_[at_ + 1];
    at_ += 2;
    if (to == '\\' || static_cast<unsigned char>(to) < static_cast<unsigned char>(from))
      return refuse(fmt::format("'{}-{}' is no range", from, to));
    set |= range(from, to);
  }

  part_ptr repeated(part_ptr what) {
    while (!wrong_ && !at_end()) {
      auto times = made(part::kind::repeated);
      if (take('*'))
        times->least = 0;
      else if (take('+'))
        times->least = 1;
      else if (take('?'))
        times->most = 1;
      else if (next() != '{' || !count(*times))
        break;
      // As few as possible, or as many: the same names fit.
      take('?');
      times->inside.push_back(std::move(what));
      what = std::move(times);
    }
    return what;
  }

  /// {m}, {m,} or {m,n}; what is none of these is text.
  bool count(part& times) {
    const auto back = at_++;
    const auto least = number();
    auto most = least;
    if (least && take(','))
      most = number();
    const bool endless = least && !most && pattern_[at_ - 1] == ',';
    if (!least || (!most && !endless) || !take('}')) {
      at_ = back;
      return false;
    }
    if (most && *most < *least)
      refuse(fmt::format("it repeats {} to {} times", *least, *most));
    times.least = *least;
    times.most = most;
    return true;
  }

  std::optional<std::uint32_t> number() {
    constexpr std::uint32_t repeats_max = 1'000; // Go's
    std::optional<std::uint32_t> read;
    for (; !at_end() && is_digit(next()); ++at_) {
      read = read.value_or(0) * 10 + static_cast<std::uint32_t>(next() - '0');
      if (*read > repeats_max) {
        refuse(fmt::format("it repeats more than {} times", repeats_max));
        return read;
      }
    }
    return read;
  }

  // ---- writing ----

  void write(const part& from) {
    if (wrong_)
      return;
    switch (from.is) {
    case part::kind::one_of:
      made_.sets_.push_back(from.set);
      return add({step::kind::one_of, static_cast<std::uint32_t>(made_.sets_.size() - 1), 0});
    case part::kind::begin:
      return add({step::kind::begin, 0, 0});
    case part::kind::end:
      return add({step::kind::end, 0, 0});
    case part::kind::in_turn:
      for (const auto& one : from.inside)
        write(*one);
      return;
    case part::kind::either:
      return write_either(from);
    case part::kind::repeated:
      return write_repeated(from);
    }
  }

  void write_either(const part& from) {
    std::vector<std::size_t> to_the_end;
    for (std::size_t n = 0; n + 1 < from.inside.size() && !wrong_; ++n) {
      const auto fork = here();
      add({step::kind::either, here() + 1, 0});
      write(*from.inside[n]);
      to_the_end.push_back(here());
      add({step::kind::either, 0, 0});
      made_.steps_[fork].second = here();
    }
    write(*from.inside.back());
    for (const auto jump : to_the_end)
      made_.steps_[jump].first = made_.steps_[jump].second = here();
  }

  void write_repeated(const part& from) {
    const auto& what = *from.inside[0];
    for (std::uint32_t n = 0; n < from.least && !wrong_; ++n)
      write(what);
    if (!from.most) {
      const auto fork = here();
      add({step::kind::either, here() + 1, 0});
      write(what);
      add({step::kind::either, fork, fork});
      made_.steps_[fork].second = here();
      return;
    }
    for (std::uint32_t n = from.least; n < *from.most && !wrong_; ++n) {
      const auto fork = here();
      add({step::kind::either, here() + 1, 0});
      write(what);
      // Leaving out this one leaves out the others, or the next fork does: the same names fit.
      made_.steps_[fork].second = here();
    }
  }

  // ---- both ----

  static part_ptr made(typename part::kind is) {
    auto one = std::make_unique<part>();
    one->is = is;
    return one;
  }
  static part_ptr set_of(characters set) {
    auto one = made(part::kind::one_of);
    one->set = set;
    return one;
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(made_.steps_.size()); }

  void add(step one) {
    made_.steps_.push_back(one);
    if (made_.steps_.size() > limits::name_pattern_steps_max)
      refuse("it repeats too much");
  }

  void refuse(std::string what) {
    if (!wrong_)
      wrong_ = error{errc::invalid, std::move(what)};
  }

  bool at_end() const { return at_ >= pattern_.size(); }
  char next() const { return pattern_[at_]; }
  bool take(char one) {
    if (at_end() || next() != one)
      return false;
    ++at_;
    return true;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::optional<error> wrong_;
  name_pattern made_;
};

result<name_pattern> name_pattern::of(std::string_view pattern) {
  if (pattern.size() > limits::name_max)
    return failure(errc::invalid, fmt::format("it has more than {} characters", limits::name_max));
  return name_pattern_reader(pattern).read();
}

bool name_pattern::fits(std::string_view name, std::uint64_t& looks) const {
  std::vector<std::uint32_t> now, next, open;
  std::vector<std::size_t> seen(steps_.size(), 0); // where it was last, from 1 on
  for (std::size_t at = 0; at <= name.size(); ++at) {
    // A part of the name may begin here.
    open = std::exchange(next, {});
    open.push_back(0);
    now.clear();
    while (!open.empty()) {
      const auto which = open.back();
      open.pop_back();
      if (std::exchange(seen[which], at + 1) == at + 1)
        continue;
      ++looks;
      const auto& one = steps_[which];
      if (one.is == step::kind::fits)
        return true;
      if (one.is == step::kind::either)
        open.insert(open.end(), {one.first, one.second});
      else if (one.is == step::kind::one_of)
        now.push_back(which);
      else if (one.is == step::kind::begin ? at == 0 : at == name.size())
        open.push_back(which + 1);
    }
    if (at < name.size())
      for (const auto which : now)
        if (sets_[steps_[which].first].test(static_cast<unsigned char>(name[at])))
          next.push_back(which + 1);
  }
  return false;
}

} // namespace troupe::topology
