#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

class questions_are_answered_checker final : public observer {
 public:
  explicit questions_are_answered_checker(world& w) : world_(w) {}

  void asked(std::uint64_t question, const std::string& host, const std::string& what,
             instant due) override {
    open_[question] = {host, what, due};
    next_due_ = std::min(next_due_, due);
  }

  void answered(std::uint64_t question) override {
    if (open_.erase(question) == 0)
      world_.blame("questions_are_answered",
                   fmt::format("question {} was answered twice, or never asked", question));
  }

  void froze(const std::string& host) override { frozen_.insert(host); }

  void thawed(const std::string& host) override {
    frozen_.erase(host);
    next_due_ = world_.events.now();
    for (auto& [question, q] : open_)
      if (q.host == host)
        q.due = std::max(q.due, world_.events.now() + 1s);
  }

  void ended(const std::string& host, ending_kind) override {
    frozen_.erase(host);
    for (auto at = open_.begin(); at != open_.end();)
      at = at->second.host == host ? open_.erase(at) : std::next(at);
  }

  void time_passed(instant now) override {
    if (now < next_due_)
      return;
    next_due_ = instant::max();
    for (const auto& [question, q] : open_) {
      if (frozen_.count(q.host))
        continue;
      if (q.due <= now)
        world_.blame("questions_are_answered",
                     fmt::format("{} got no answer to {} in time", q.host, q.what));
      next_due_ = std::min(next_due_, q.due);
    }
  }

 private:
  struct open_question {
    std::string host;
    std::string what;
    instant due;
  };

  world& world_;
  std::map<std::uint64_t, open_question> open_;
  std::set<std::string> frozen_;
  instant next_due_ = instant::max();
};

} // namespace

std::shared_ptr<observer> questions_are_answered(world& w) {
  return std::make_shared<questions_are_answered_checker>(w);
}

} // namespace troupe::sim::checkers
