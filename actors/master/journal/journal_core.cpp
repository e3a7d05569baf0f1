#include "actors/master/journal/journal_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

journal_core::effects journal_core::begin() {
  compacting_ = true;
  return {compact{}};
}

journal_core::effects journal_core::append(ticket which, const messages::any_msg& record) {
  effects out;
  if (trouble_) {
    hold(out, entry{which, record, false});
    return out;
  }
  with_store_.emplace(which, record);
  out.push_back(write{which, record});
  return out;
}

journal_core::effects journal_core::written(instant now, ticket which,
                                            const result<std::uint64_t>& outcome) {
  effects out;
  const auto found = with_store_.find(which);
  if (found == with_store_.end())
    return out;
  const auto record = std::move(found->second);
  with_store_.erase(found);
  // In trouble the oldest is being tried; others were with the store when the trouble began.
  const bool oldest = !waiting_.empty() && waiting_.front().which == which;
  const bool acknowledged = oldest && waiting_.front().acknowledged;
  if (!outcome && outcome.error().code == errc::unavailable) {
    become_troubled(out, now, outcome.error().what);
    if (!oldest)
      hold(out, entry{which, record, false});
    return out;
  }
  if (oldest)
    waiting_.pop_front();
  if (!acknowledged && outcome)
    out.push_back(acknowledge{which, *outcome});
  else if (!acknowledged)
    out.push_back(refuse{which, outcome.error()});
  if (outcome)
    count(out, record.size_bytes());
  if (trouble_ && oldest) {
    trouble_->late += 1;
    trouble_->wait.reset();
    if (waiting_.empty()) {
      become_well(out, now);
    } else {
      with_store_.emplace(waiting_.front().which, waiting_.front().record);
      out.push_back(write{waiting_.front().which, waiting_.front().record});
    }
  }
  return out;
}

/// Those that were with the store together come back together: they keep their order.
void journal_core::hold(effects& out, entry e) {
  if (waiting_.size() >= limits::journal_unwritten_max) {
    out.push_back(
        refuse{e.which, error{errc::overloaded,
                              fmt::format("{} decisions wait for the journal '{}': {}",
                                          waiting_.size(), options_.where, trouble_->what)}});
    return;
  }
  if (!options_.asked_for) {
    e.acknowledged = true;
    out.push_back(acknowledge{e.which, 0});
  }
  const auto behind = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&e](const entry& other) { return other.which > e.which; });
  waiting_.insert(behind, std::move(e));
}

void journal_core::become_troubled(effects& out, instant now, const std::string& what) {
  const bool anew = !trouble_;
  if (anew) {
    trouble_ = trouble{};
    reminder_.begin(now);
  }
  auto& t = *trouble_;
  t.what = what;
  t.retry_at = now + t.wait.next();
  if (anew)
    out.push_back(note{{log::level::warning,
                        "journal_waits",
                        fmt::format("{}. Training goes on; {}", what, what_it_means()),
                        {{"journal", options_.where}}}});
}

std::string journal_core::what_it_means() const {
  return options_.asked_for
             ? "a node that is lost or fails is not replaced until the journal takes the decision: "
               "free some space there"
             : "until there is space the master keeps its decisions in memory: if it ends before, "
               "the next one does not know them (--journal FILE puts them elsewhere)";
}

void journal_core::become_well(effects& out, instant now) {
  out.push_back(
      note{{log::level::story,
            "journal_goes_on",
            fmt::format("the journal '{}' takes decisions again, after {}; {} had waited",
                        options_.where, troupe::in_words(reminder_.waited(now)), trouble_->late),
            {{"journal", options_.where}, {"waited_ms", milliseconds_of(reminder_.waited(now))}}}});
  trouble_.reset();
  reminder_.end();
}

void journal_core::count(effects& out, std::size_t bytes) {
  ++records_;
  bytes_ += bytes;
  if (compacting_ ||
      (records_ < limits::journal_compact_records && bytes_ < limits::journal_compact_bytes))
    return;
  compacting_ = true;
  out.push_back(compact{});
}

/// One that failed is tried again after as many records.
journal_core::effects journal_core::compacted(const result<void>& outcome) {
  compacting_ = false;
  records_ = bytes_ = 0;
  if (outcome)
    return {};
  return {
      note{{log::level::info,
            "journal_not_compacted",
            "the journal could not be made smaller, and goes on growing: " + outcome.error().what,
            {{"journal", options_.where}}}}};
}

journal_core::effects journal_core::tick(instant now) {
  effects out;
  if (!trouble_)
    return out;
  if (trouble_->retry_at && now >= *trouble_->retry_at && !waiting_.empty()) {
    trouble_->retry_at.reset();
    const auto& oldest = waiting_.front();
    if (with_store_.emplace(oldest.which, oldest.record).second)
      out.push_back(write{oldest.which, oldest.record});
  }
  if (reminder_.due(now))
    out.push_back(note{
        {log::level::warning,
         "journal_still_waits",
         fmt::format("{}, for {} now; {} decision(s) wait. Training goes on; {}", trouble_->what,
                     troupe::in_words(reminder_.waited(now)), waiting_.size(), what_it_means()),
         {{"journal", options_.where}, {"waited_ms", milliseconds_of(reminder_.waited(now))}}}});
  return out;
}

std::vector<messages::any_msg> journal_core::unwritten() const {
  std::vector<messages::any_msg> all;
  for (const auto& e : waiting_)
    if (e.acknowledged)
      all.push_back(e.record);
  return all;
}

std::optional<instant> journal_core::next_wakeup() const {
  if (!trouble_)
    return std::nullopt;
  auto next = reminder_.next();
  if (trouble_->retry_at)
    next = next ? std::min(*next, *trouble_->retry_at) : *trouble_->retry_at;
  return next;
}

std::string journal_core::in_words() const {
  if (!trouble_)
    return fmt::format("{} writes in flight", with_store_.size());
  return fmt::format("{}; {} decision(s) wait", trouble_->what, waiting_.size());
}

} // namespace troupe::actors
