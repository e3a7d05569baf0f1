#include "actors/master/journal/journal_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

/// A master that was killed again and again never came to 512 records, so each start compacts.
journal_core::effects journal_core::begin() {
  compacting_ = true;
  return {compact{}};
}

journal_core::effects journal_core::append(ticket which, const messages::any_msg& record) {
  effects out;
  // Not to the store, though it may have room by now: it would overtake those that wait.
  if (trouble_) {
    hold(out, entry{which, record, false});
    return out;
  }
  // Kept until the answer: if the disk is full, this is the only copy.
  with_store_.emplace(which, record);
  out.push_back(write{which, record});
  return out;
}

/// Three outcomes. Taken: the decision may be announced. Full: the record waits, and with it all
/// that come after. Anything else, a damaged file or a disk that fails, does not pass by itself, so
/// the sender hears it and ends: a decision that is not on record must not be announced.
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
  // Acknowledged from memory before: no second answer.
  const bool acknowledged = oldest && waiting_.front().acknowledged;
  if (!outcome && outcome.error().code == errc::unavailable && which <= withdrawn_ &&
      !acknowledged) {
    if (oldest)
      waiting_.pop_front();
    out.push_back(refuse{which, outcome.error()});
    if (waiting_.empty())
      forget_trouble();
    else if (oldest)
      trouble_->retry_at = now + trouble_->wait.next();
    return out;
  }
  if (!outcome && outcome.error().code == errc::unavailable) {
    TROUPE_RARE_IF(!trouble_, "journal: the disk takes no record");
    TROUPE_RARE_IF(oldest, "journal: the disk takes the oldest record still not");
    become_troubled(out, now, outcome.error().what);
    // One of those that were with the store when the trouble began: it fails like the first and
    // joins the queue.
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
  // One at a time, and only by success: each record that is taken shows that there is room for one.
  // If the disk is full again, only one try has failed.
  if (trouble_ && oldest) {
    trouble_->late += 1;
    // There is progress, so the next trouble of this wait is tried again soon.
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

/// A planner that has fallen leaves decisions behind that wait for a full disk. Its successor does
/// not find them on record, and decides anew; if they were written all the same, the journal would
/// say two things: one number for two worlds, or a verdict with a generation behind it. One that is
/// with the store cannot be called back; the store is read after it.
journal_core::effects journal_core::withdraw() {
  effects out;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    withdrawn_ = std::max(withdrawn_, at->which);
    if (at->acknowledged || with_store_.count(at->which) != 0) {
      ++at;
      continue;
    }
    TROUPE_RARE("journal: a record that waits is withdrawn");
    out.push_back(refuse{at->which, error{errc::closed, "the planner has begun anew"}});
    at = waiting_.erase(at);
  }
  if (!with_store_.empty())
    withdrawn_ = std::max(withdrawn_, with_store_.rbegin()->first);
  if (waiting_.empty() && with_store_.empty())
    forget_trouble();
  return out;
}

void journal_core::forget_trouble() {
  trouble_.reset();
  reminder_.end();
}

/// Those that were with the store together come back together: they keep their order.
void journal_core::hold(effects& out, entry e) {
  // A decision that cannot even be remembered ends its sender. That is thousands of generations on
  // a full disk.
  if (waiting_.size() >= limits::journal_unwritten_max) {
    out.push_back(
        refuse{e.which, error{errc::overloaded,
                              fmt::format("{} decisions wait for the journal '{}': {}",
                                          waiting_.size(), options_.where, trouble_->what)}});
    return;
  }
  // The user did not ask for a file, so the job does not stand still for its sake. What is lost if
  // the master ends before there is room is said in the warning.
  if (!options_.asked_for) {
    e.acknowledged = true;
    out.push_back(acknowledge{e.which, 0});
  }
  // One that was with the store may come back after a newer one was held, and belongs before it.
  const auto behind = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&e](const entry& other) { return other.which > e.which; });
  TROUPE_RARE_IF(!waiting_.empty(), "journal: several records wait for the disk");
  waiting_.insert(behind, std::move(e));
}

/// Each failed try comes here. The user is told the first time at once, and then by the reminder:
/// with a line for each try an hour of a full disk would be 360 of them.
void journal_core::become_troubled(effects& out, instant now, const std::string& what) {
  const bool anew = !trouble_;
  if (anew) {
    trouble_ = trouble{};
    reminder_.begin(now);
  }
  auto& t = *trouble_;
  t.what = what;
  // With back-off: a disk that is full for a moment has room within a second, and one that stays
  // full is not asked ten times a second for hours.
  t.retry_at = now + t.wait.next();
  if (anew)
    out.push_back(note{{log::level::warning,
                        "journal_waits",
                        fmt::format("{}. Training goes on; {}", what, what_it_means()),
                        {{"journal", options_.where}}}});
}

/// What the user can do about it, which is not the same in both cases: make room, or do nothing.
std::string journal_core::what_it_means() const {
  return options_.asked_for
             ? "a node that is lost or fails is not replaced until the journal takes the decision: "
               "free some space there"
             : "until there is space the master keeps its decisions in memory: if it ends before, "
               "the next one does not know them (--journal FILE puts them elsewhere)";
}

/// Said as the warning was: a user who has made room must see that this was enough.
void journal_core::become_well(effects& out, instant now) {
  out.push_back(
      note{{log::level::notice,
            "journal_goes_on",
            fmt::format("the journal '{}' takes decisions again, after {}; {} had waited",
                        options_.where, troupe::in_words(reminder_.waited(now)), trouble_->late),
            {{"journal", options_.where}, {"waited_ms", milliseconds_of(reminder_.waited(now))}}}});
  TROUPE_RARE("journal: the disk takes records again");
  forget_trouble();
}

/// By records and by bytes: many small generations, or few large worlds. Only what the store has
/// taken counts, since only that is on the disk.
void journal_core::count(effects& out, std::size_t bytes) {
  ++records_;
  bytes_ += bytes;
  // A compaction costs as much as what remains, so it waits until much has come.
  if (compacting_ ||
      (records_ < limits::journal_compact_records && bytes_ < options_.compact_bytes))
    return;
  compacting_ = true;
  out.push_back(compact{});
}

/// One that failed is tried again after as many records.
/// A compaction needs room itself, so on a full disk it would fail for each record.
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
  // Only the oldest: when it is taken the others follow, in their order.
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

/// An actor that begins anew within this process must find what its predecessor has announced. What
/// was not acknowledged was not announced, so it may be decided otherwise.
std::vector<messages::any_msg> journal_core::unwritten() const {
  std::vector<messages::any_msg> all;
  for (const auto& e : waiting_)
    if (e.acknowledged)
      all.push_back(e.record);
  return all;
}

/// Without trouble nothing is timed: the store answers when it has written.
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
