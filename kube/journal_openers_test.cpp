// Masters that open one journal one after the other and at once, at a server whose answers get
// lost.

#include "kube/limits.hpp"
#include "runtime/base/random.hpp"
#include "tests/kube/journal_opener.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <memory>
#include <set>

using namespace troupe;
using namespace troupe::kube;
using testing::journal_opener;
using testing::refused_with;
using testing::simulated_config_maps;
using words = std::vector<std::string>;

namespace {

/// As compaction in the product: what may go is in the record, and the newest one stays.
bool may_go(const std::string& record) {
  return record.back() % 3 == 0;
}

words shortened(words records) {
  words kept;
  for (const auto& record : records)
    if (!may_go(record))
      kept.push_back(record);
  return kept;
}

class many_masters {
 public:
  many_masters(std::uint64_t seed, duration patience) : random_(seed), patience_(patience) {}

  void step() {
    const auto what = random_.below(20);
    if (masters_.empty() || (what == 0 && masters_.size() < 8))
      begin_master();
    else if (what < 8)
      append(any_master());
    else if (what == 8)
      compact(any_master());
    else if (what == 9)
      apply_late();
    else if (what == 10 && !server_.objects.empty())
      server_.touch(server_.objects.at("words"));
    else
      go_on(any_master());
  }

  /// What all that was acknowledged comes to. Where patience ends, only what one acknowledged that
  /// had the journal until the end.
  void check() {
    while (!late_.empty())
      apply_late();
    fates_ = false;
    for (auto& m : masters_)
      if (patience_ != journal_opener::endless)
        m.opener->settle();
    journal_opener last(server_, "last/0");
    last.open();
    REQUIRE(last.opened);
    last.read();
    const auto& all = last.records;
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
    std::size_t acknowledged = 0;
    for (auto& m : masters_) {
      std::size_t behind = 0;
      for (std::size_t at = 0; at < m.sent.size(); ++at) {
        const auto there = std::find(all.begin(), all.end(), m.sent[at]);
        const bool acked = at < m.opener->answers.size() && is_index(m.opener->answers[at]);
        acknowledged += acked ? 1 : 0;
        if (m.sent[at].empty())
          continue; // a compaction
        if (acked && !may_go(m.sent[at]) && (patience_ == journal_opener::endless || has_it(m)))
          CHECK_MESSAGE(there != all.end(), m.sent[at], " was acknowledged and is gone");
        if (there == all.end())
          continue;
        const auto place = static_cast<std::size_t>(there - all.begin()) + 1;
        CHECK(behind < place);
        behind = place;
      }
    }
    total_ += acknowledged;
  }

  static std::size_t total_;

 private:
  struct master {
    std::unique_ptr<journal_opener> opener;
    words sent; ///< an answer each
  };

  static bool has_it(const master& m) {
    return std::none_of(m.opener->told.begin(), m.opener->told.end(),
                        [](const log::event& e) { return e.name == std::string("journal_lost"); });
  }

  static bool is_index(const std::string& answer) {
    return !answer.empty() && std::isdigit(static_cast<unsigned char>(answer[0])) != 0;
  }

  master& any_master() { return masters_[random_.below(masters_.size())]; }

  void begin_master() {
    masters_.push_back(
        {std::make_unique<journal_opener>(server_, "master/" + std::to_string(masters_.size()),
                                          std::string{}, patience_),
         {}});
    auto& opener = *masters_.back().opener;
    opener.holds = true;
    opener.instead = [this](const api_request& r) { return fate(r); };
    opener.open();
  }

  void append(master& m) {
    const auto letter = static_cast<char>('a' + random_.below(26));
    m.sent.push_back(std::to_string(++records_) + letter);
    m.opener->append(m.sent.back());
  }

  void compact(master& m) {
    m.sent.emplace_back();
    m.opener->compact(shortened);
  }

  void go_on(master& m) {
    if (m.opener->held.empty())
      m.opener->tick();
    else
      m.opener->release();
  }

  std::optional<api_answer> fate(const api_request& r) {
    if (!fates_)
      return std::nullopt;
    switch (random_.below(12)) {
    case 0: // the answer is lost
      server_.answer(r);
      return api_answer{0, "connection reset", {}};
    case 1: // the request is lost
      return api_answer{0, "connection refused", {}};
    case 2: // the request takes its time
      late_.push_back(r);
      return api_answer{0, "it has not answered in time", {}};
    case 3:
      return refused_with(500, "etcdserver: request timed out");
    case 4:
      server_.answer(r);
      return refused_with(504, "the request may have been processed");
    case 5:
      return api_answer{429, "", std::optional<duration>(1s)};
    default:
      return std::nullopt;
    }
  }

  void apply_late() {
    if (late_.empty())
      return;
    server_.answer(late_.front());
    late_.pop_front();
  }

  random_source random_;
  const duration patience_;
  bool fates_ = true;
  simulated_config_maps server_;
  std::deque<api_request> late_;
  std::vector<master> masters_;
  int records_ = 0;
};

std::size_t many_masters::total_ = 0;

} // namespace

TEST_CASE("what was acknowledged is read back by the next opener, in order, no record twice") {
  many_masters::total_ = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    many_masters world(seed, journal_opener::endless);
    for (int n = 0; n < 300; ++n)
      world.step();
    world.check();
  }
  CHECK(many_masters::total_ > 3'000); // else nothing was tested
}

TEST_CASE(
    "what was promised by the master that has the journal at the end is in it, in order, once") {
  many_masters::total_ = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    many_masters world(seed, 300ms);
    for (int n = 0; n < 300; ++n)
      world.step();
    world.check();
  }
  CHECK(many_masters::total_ > 3'000); // else nothing was tested
}
