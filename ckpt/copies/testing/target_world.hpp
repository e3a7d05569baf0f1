#pragma once

#include "ckpt/copies/testing/target_vocabulary.hpp"
#include "runtime/base/invariant.hpp"
#include "tests/actors/fate.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::ckpt::testing {

/// A target_core among sources of chance, some of which do what they should. What must hold throws:
/// nothing is added beyond the memory that was asked for, nothing happens to a stripe that has
/// ended, a source hears one answer to each snapshot, and what is kept is bounded.
class target_world {
 public:
  explicit target_world(actors::testing::fate choose) : choose_(std::move(choose)) {}

  void strike() {
    const auto who = choose_(links_max);
    switch (choose_(8)) {
    case 0:
      begin(who, some_beginning());
      break;
    case 1:
      hears(who, say_piece(some(5), choose_(8), std::string(choose_(9), 'x')));
      break;
    case 2:
      hears(who, say_end(some(3)));
      break;
    case 3:
      lose(who);
      break;
    default:
      go_on(who);
    }
    check();
  }

  std::size_t finished() const { return finished_; }

 private:
  static constexpr std::uint64_t links_max = 6;
  static constexpr std::size_t slots_max = 4;

  struct open_stripe {
    std::uint64_t bytes = 0, written = 0;
  };
  /// What an honest source has sent, by stripe.
  struct snapshot {
    beginning says;
    std::map<std::uint32_t, std::uint64_t> sent;
    bool ended = false;
  };

  std::uint32_t some(std::uint64_t bound) { return static_cast<std::uint32_t>(choose_(bound)); }

  beginning some_beginning() {
    static const code codes[] = {{2, 1}, {3, 1}, {3, 2}, {4, 1}, {5, 2}, {5, 4}, {5, 3}, {1, 1}};
    const auto& c = codes[choose_(std::size(codes))];
    beginning b;
    b.ranks.clear();
    for (std::uint32_t m = 0; m < c.members; ++m)
      b.ranks.push_back(20 + m);
    b.parity = c.parity;
    b.step = 1 + choose_(2);
    b.target = some(2);
    b.source = some(c.members + 1);
    b.bytes = choose_(10);
    b.local_rank = some(3);
    return b;
  }

  void begin(std::uint64_t who, const beginning& b) {
    snapshots_[who] = {b, {}, false};
    ++asked_[who];
    hears(who, say(b));
  }

  /// The next thing that a well-behaved source says.
  void go_on(std::uint64_t who) {
    const auto at = snapshots_.find(who);
    if (at == snapshots_.end() || at->second.ended)
      return begin(who, some_beginning());
    auto& i = at->second;
    const code c{static_cast<std::uint32_t>(i.says.ranks.size()), i.says.parity};
    for (std::uint32_t s = 0; check_of(c, i.says) && s < c.members; ++s)
      for (std::uint32_t row = 0; row < c.parity; ++row) {
        const auto piece = piece_of(c, i.says.source, s);
        if (target(c, s, row) != i.says.target || !piece)
          continue;
        const auto left = piece_in(c, i.says.bytes, *piece).bytes - i.sent[s];
        if (left == 0)
          continue;
        const auto now = 1 + choose_(left);
        const auto offset = i.sent[s];
        i.sent[s] += now;
        return hears(who, say_piece(s, offset, std::string(now, 'x')));
      }
    i.ended = true;
    hears(who, say_end(7));
  }

  static bool check_of(const code& c, const beginning& b) {
    return ckpt::check(c).has_value() && b.source < c.members && b.target < c.members;
  }

  void hears(std::uint64_t who, const messages::any_msg& m) { obey(core_.heard(who, m)); }

  void lose(std::uint64_t who) {
    snapshots_.erase(who);
    asked_.erase(who);
    obey(core_.closed(who, "gone"));
  }

  void obey(target_core::effects first) {
    std::deque<target_core::effect> todo(first.begin(), first.end());
    for (; !todo.empty(); todo.pop_front()) {
      const auto more = std::visit([this](const auto& e) { return perform(e); }, todo.front());
      todo.insert(todo.end(), more.begin(), more.end());
    }
  }

  target_core::effects perform(const target_core::open& o) {
    invariant(o.which > last_, "a stripe's number was used twice");
    last_ = o.which;
    if (open_.size() == slots_max)
      return core_.no_memory(o.which, "there is none");
    open_[o.which] = {o.bytes, 0};
    return {};
  }
  target_core::effects perform(const target_core::grow& g) {
    const auto at = open_.find(g.which);
    if (at == open_.end())
      return {};
    invariant(g.bytes > at->second.bytes, "memory grows to less than there is");
    if (choose_(8) == 1)
      return core_.no_memory(g.which, "there is not that much");
    at->second.bytes = g.bytes;
    return {};
  }
  target_core::effects perform(const target_core::add& a) {
    auto& s = open_.at(a.which);
    const auto end = a.offset + a.message.read()->getContent().size();
    invariant(held_piece::bytes_before + end <= s.bytes, "something is added beyond the memory");
    invariant(a.fresh == s.written && a.offset <= s.written, "zeros are where there are none");
    invariant(a.times != 0, "a piece counts for nothing");
    s.written = std::max(s.written, end);
    return {};
  }
  target_core::effects perform(const target_core::finish& f) {
    const auto at = open_.find(f.which);
    invariant(at != open_.end(), "a stripe is finished that is not open");
    invariant(f.snapshot.bytes == held_piece::bytes_before + at->second.written &&
                  f.snapshot.bytes <= at->second.bytes,
              "a parity is not as long as what was added");
    open_.erase(at);
    ++finished_;
    return {};
  }
  target_core::effects perform(const target_core::drop& d) {
    open_.erase(d.which);
    invariant(d.which <= last_ && dropped_.insert(d.which).second, "a stripe is dropped twice");
    return {};
  }
  target_core::effects perform(const target_core::reply& r) {
    if (r.message.is<messages::CopyHeld>()) {
      invariant(asked_[r.to] != 0, "an image is held that was not given");
      asked_[r.to] = 0;
      snapshots_.erase(r.to);
    } else if (r.message.is<messages::CopyRefused>()) {
      asked_[r.to] = 0;
      snapshots_.erase(r.to);
    }
    return {};
  }
  target_core::effects perform(const target_core::note& n) {
    invariant(n.event.text.find('\n') == std::string::npos, "a note has several lines");
    return {};
  }

  void check() const {
    invariant(core_.stripes_open() == open_.size(), "the core and the memory do not agree");
    invariant(open_.size() <= slots_max, "more stripes are open than there are slots");
  }

  actors::testing::fate choose_;
  target_core core_{messages::author("replication_target"), 2};
  target_core::stripe_id last_ = 0;
  std::size_t finished_ = 0;
  std::map<target_core::stripe_id, open_stripe> open_;
  std::set<target_core::stripe_id> dropped_;
  std::map<std::uint64_t, snapshot> snapshots_;
  std::map<std::uint64_t, std::uint64_t> asked_;
};

} // namespace troupe::ckpt::testing
