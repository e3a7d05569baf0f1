#pragma once

#include "actors/limits.hpp"
#include "messages/msg.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/reminder.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct journal_options {
  /// For people: the file. Empty: there is none.
  std::string where;
  /// The user asked for this file (--journal). Then a decision waits until it is in the file. A
  /// file that was not asked for is not worth a job: while its disk is full, decisions go on
  /// without it.
  bool asked_for = true;
  /// What records may come to before those that say nothing more are dropped. Less where each
  /// append costs what all of them come to.
  std::size_t compact_bytes = limits::journal_compact_bytes;
};

/// Gets records into the store, in order, also when its disk is full for a while. A full disk is
/// most often filled by what shares it with the journal, and is emptied again by its user; a master
/// that gives up after a few tries would end a job that trains well.
///
/// Without trouble a record goes to the store at once. When the store says `unavailable` the core
/// keeps that record and all after it, tries the oldest again with back-off, and tells the user now
/// and again what is full, for how long, and what to do. Anything else that the store says is
/// final.
class journal_core {
 public:
  /// The order of the decisions, in which the store is to get them.
  using ticket = std::uint64_t;

  /// Append to the store; answered by written().
  struct write {
    ticket which;
    messages::any_msg record;
  };
  /// The sender may announce its decision.
  struct acknowledge {
    ticket which;
    std::uint64_t index;
  };
  /// The sender ends: its supervisor begins it anew from what is on record.
  struct refuse {
    ticket which;
    error why;
  };
  /// Have the store drop what says nothing any more; answered by compacted().
  struct compact {};
  struct note {
    log::event event;
  };
  using effect = std::variant<write, acknowledge, refuse, compact, note>;
  using effects = std::vector<effect>;

  explicit journal_core(journal_options options) : options_(std::move(options)) {}

  /// First of all: what earlier masters have left is compacted before it is read.
  effects begin();
  /// Tickets count upwards.
  effects append(ticket which, const messages::any_msg& record);
  effects written(instant now, ticket which, const result<std::uint64_t>& outcome);
  /// Before the store is read: the actors that append have begun anew, and withdraw what they had
  /// not announced.
  effects withdraw();
  /// A failure is no trouble: the journal is only longer than it need be.
  effects compacted(const result<void>& outcome);
  /// The next try, and what the user is told of the wait.
  effects tick(instant now);

  /// What was acknowledged and is not in the store: belongs at the end of what is read back.
  /// A record may be in both, when it is written as the file is read. Records are facts, so it does
  /// not matter.
  std::vector<messages::any_msg> unwritten() const;

  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  struct entry {
    ticket which = 0;
    messages::any_msg record;
    /// From memory. The record is to reach the store all the same, once there is room.
    bool acknowledged = false;
  };
  /// The disk is full.
  struct trouble {
    /// As the store said it last: the reason may change while the wait goes on.
    std::string what;
    back_off wait{limits::journal_retry_first, limits::journal_retry_max};
    std::optional<instant> retry_at; ///< nothing while a try is under way
    std::size_t late = 0;            ///< records written since it began
  };

  void hold(effects& out, entry e);
  /// Nothing is left to be tried.
  void forget_trouble();
  void become_troubled(effects& out, instant now, const std::string& what);
  /// When the last of those that waited is taken, and not at the first.
  void become_well(effects& out, instant now);
  /// Towards the next compaction.
  void count(effects& out, std::size_t bytes);
  /// For the user, in each warning: whether the job stands still, and what can be done.
  std::string what_it_means() const;

  journal_options options_;
  /// With the store, by ticket; in trouble at most the oldest of waiting_.
  std::map<ticket, messages::any_msg> with_store_;
  /// By ticket. As long as there is trouble only the first of these is sent to the store.
  std::deque<entry> waiting_; ///< in trouble; bounded by limits::journal_unwritten_max
  /// Up to this one only what was acknowledged is still wanted.
  ticket withdrawn_ = 0;
  std::optional<trouble> trouble_;
  reminder reminder_;
  // Since the last compaction:
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
  /// One at a time: records that come meanwhile count for the next one.
  bool compacting_ = false;
};

} // namespace troupe::actors
