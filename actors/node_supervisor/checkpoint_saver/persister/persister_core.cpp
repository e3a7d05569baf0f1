#include "actors/node_supervisor/checkpoint_saver/persister/persister_core.hpp"

#include "actors/limits.hpp"
#include "ckpt/catalog/newest_generation.hpp"
#include "ckpt/limits.hpp"
#include "messages/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// The generation is part of the name: after a restart the same step may be saved again, by another
/// world and with other contents.
step_key key_of(const ckpt::persist_request& snapshot) {
  return {snapshot.to.place, snapshot.step, snapshot.made_by, snapshot.save};
}

/// What a training process asks for is its own business only within bounds: a second is too short
/// for any disk, and a snapshot that is waited for without end holds its slot for as long.
duration patience_for(const ckpt::persist_request& snapshot) {
  return std::clamp<duration>(snapshot.to.save_within, limits::save_within_min,
                              limits::save_within_max);
}

/// The master names the shards, as only it has heard of all of them; this node adds nothing of its
/// own but the layout.
ckpt::manifest manifest_of(const step_key& which, const std::string& layout,
                           CommitStep::Reader order) {
  ckpt::manifest says;
  says.step = which.step;
  says.save = which.save;
  says.made_by = which.made_by;
  says.world_size = order.getWorldSize();
  says.layout = layout;
  for (auto f : order.getFiles())
    says.shards.push_back(
        {f.getName().cStr(), {f.getBytes(), f.getCrc32()}, std::string(f.getNode().cStr())});
  return says;
}

log::event about(const step_key& which, log::level severity, std::string name, std::string text) {
  return {severity,
          std::move(name),
          std::move(text),
          {{"step", static_cast<std::int64_t>(which.step)},
           {"place", which.place},
           {"generation", static_cast<std::int64_t>(which.made_by.value)}}};
}

} // namespace

persister_core::persister_core(node_name node, messages::author author)
    : node_(std::move(node)), author_(std::move(author)) {}

// ---- the host ----

/// The host may tell of a snapshot again: what is known already is not written twice.
persister_core::effects persister_core::persist_requested(instant now,
                                                          const ckpt::persist_request& snapshot) {
  effects out;
  if (snapshots_.count(snapshot.key()) != 0)
    return out;
  // Finalized at once, as a failure: a slot whose request was dropped without a word would never be
  // free again.
  if (snapshots_.size() >= limits::persist_requests_max) {
    out.push_back(finalize{
        snapshot, failure(errc::overloaded,
                          fmt::format("step {} of rank {} is not written: {} others "
                                      "are waiting on node {}",
                                      snapshot.step, snapshot.rank, snapshots_.size(), node_))});
    return out;
  }
  // Twice the time that the process asked for: the catalog gives the step up after once that time,
  // and its word comes first as a rule.
  snapshots_.emplace(snapshot.key(), entry{snapshot, now + 2 * patience_for(snapshot), {}, false});
  out.push_back(write{snapshot});
  return out;
}

/// A shard that failed is reported like one that was written: the catalog can then give the step up
/// at once instead of waiting for what will not come.
persister_core::effects persister_core::written(instant now, const ckpt::persist_request& snapshot,
                                                const result<ports::receipt>& how) {
  effects out;
  const auto found = snapshots_.find(snapshot.key());
  if (found == snapshots_.end() || found->second.outcome)
    return out;
  auto& e = found->second;
  e.outcome = how;
  // From here on it is the master that is waited for, with a time of its own, and drains wait
  // along.
  e.late = false;
  // The master waits for the other shards, and then for the nodes that complete the step.
  e.until = std::max(e.until, now + 2 * patience_for(snapshot) + limits::commit_within);
  say_shard(out, e);
  return out;
}

/// The answer may find the step finalized: the master waits for a committer only so long. Then
/// there is nothing left to say about it.
persister_core::effects persister_core::committed(instant, const step_key& which,
                                                  const result<ckpt::completed>& how) {
  effects out;
  if (how)
    for (const auto& warning : how->warnings)
      out.push_back(note{about(which, log::level::warning, "checkpoint_warning",
                               fmt::format("{}: {}", which.place, warning))});
  const auto found = steps_.find(which);
  if (found == steps_.end())
    return out;
  found->second.committing = false;
  found->second.outcome = how ? result<void>{} : tl::make_unexpected(how.error());
  found->second.shared = how && how->shared;
  say_committed(out, which, found->second);
  return out;
}

/// Two steps, since a process may have requested a write in its last moment: after the look all
/// that was requested before the question is in snapshots_.
persister_core::effects persister_core::looked(instant, std::uint64_t question) {
  effects out;
  drains_.insert(question);
  answer_drains(out);
  return out;
}

// ---- the master ----

persister_core::effects persister_core::commit_step(instant, const msg<CommitStep>& m) {
  effects out;
  auto order = m.read();
  const auto which = actors::key_of(order->getKey());
  // A saver that has just crashed hears of its snapshots again, and reports them again: then it is
  // asked again.
  const auto* any = entry_of(which);
  if (any == nullptr)
    return out;
  auto& s = steps_[which];
  // The master repeats the order to each node it may have lost; the manifest is written once.
  TROUPE_RARE_IF(s.committing, "saver: the order to complete a step is repeated");
  if (s.committing)
    return out;
  // What went well is said again, what failed is tried again: an order behind a failure is that of
  // a master which has not heard of it.
  if (s.outcome && s.outcome->has_value()) {
    say_committed(out, which, s);
    return out;
  }
  s.committing = true;
  s.leads = !order->getCommitted();
  out.push_back(commit{
      which, {any->what.to, manifest_of(which, ckpt::layout_of(any->what.to.whose), *order)}});
  return out;
}

/// A new master may not have heard yet of saves that are open here: what they have written stays.
ckpt::save_id persister_core::open_from(const step_key& ended, ckpt::save_id by_master) const {
  for (const auto& [id, e] : snapshots_) {
    const auto open = key_of(e.what);
    if (open.place == ended.place && !(open == ended))
      by_master = std::min(by_master, open.id());
  }
  return by_master;
}

/// The only event by which a snapshot that was written becomes free while the master lives: until
/// then no save may take its slot.
persister_core::effects persister_core::step_finalized(instant, const msg<StepFinalized>& m) {
  effects out;
  auto verdict = m.read();
  const auto which = actors::key_of(verdict->getKey());
  const bool complete = verdict->getComplete();
  const std::string why = verdict->getWhy().cStr();
  bool any = false;
  for (auto at = snapshots_.begin(); at != snapshots_.end();) {
    const auto& e = at->second;
    // One that is being written is the writer's still; its report is answered like this one.
    if (!(key_of(e.what) == which) || !e.outcome) {
      ++at;
      continue;
    }
    // Once for all ranks of this node: they name the same place.
    if (!any)
      out.push_back(retain{{e.what.to,
                            {complete ? std::optional(which.id()) : std::nullopt,
                             open_from(which, {generation{verdict->getOpenFromGeneration()},
                                               verdict->getOpenFrom()})},
                            which.step,
                            which.made_by}});
    any = true;
    out.push_back(finalize{e.what, complete ? result<void>{} : failure(errc::unavailable, why)});
    at = snapshots_.erase(at);
  }
  const auto known = steps_.find(which);
  // The user hears of each step once from all nodes together: the loss from the nodes that lose
  // something, the success from the committer alone.
  if (any && !complete)
    out.push_back(note{
        about(which, is_told(which.place, why) ? log::level::debug : log::level::warning,
              "step_not_complete",
              fmt::format("step {} is not complete at {}: {}", which.step, which.place, why))});
  else if (any && known != steps_.end())
    out.push_back(note{about(which, known->second.leads ? log::level::info : log::level::debug,
                             "step_complete",
                             fmt::format("step {} is complete at {}", which.step, which.place))});
  forget_step_without_snapshots(which);
  answer_drains(out);
  return out;
}

/// A new link may mean a new master, and the catalog keeps nothing on a disk: it learns anew from
/// what savers repeat. To a master that knows all this already a repeat says nothing.
persister_core::effects persister_core::linked(instant) {
  effects out;
  for (const auto& [id, e] : snapshots_)
    if (e.outcome)
      say_shard(out, e);
  TROUPE_RARE_IF(!steps_.empty(), "saver: a new link while a step is completed");
  // After the shards: it means something only to a catalog that knows of the step.
  for (const auto& [which, s] : steps_)
    if (s.outcome)
      say_committed(out, which, s);
  return out;
}

bool persister_core::is_told(const std::string& place, const std::string& why) {
  if (why.find(ckpt::refused_for_newer) == why.npos)
    return false;
  if (taken_places_.size() >= limits::checkpoint_places_max)
    taken_places_.clear();
  return !taken_places_.insert(place).second;
}

// ---- drains, and what takes too long ----

/// Not answered out of what is known here: see looked().
persister_core::effects persister_core::drain(instant, std::uint64_t question) {
  return {look{question}};
}

/// Late snapshots hold up no drain: a disk that hangs must not keep a finished job from ending.
void persister_core::answer_drains(effects& out) {
  const bool pending = std::any_of(snapshots_.begin(), snapshots_.end(),
                                   [](const auto& i) { return !i.second.late; });
  if (pending)
    return;
  for (const auto question : std::exchange(drains_, {}))
    out.push_back(drained{question});
}

/// Two kinds of waiting end differently. A write cannot be taken back: the thread still reads the
/// slot, so the snapshot stays and is only called late. A missing verdict lets the slot go.
persister_core::effects persister_core::tick(instant now) {
  effects out;
  std::set<step_key> left;
  for (auto at = snapshots_.begin(); at != snapshots_.end();) {
    auto& e = at->second;
    if (e.late || e.until > now) {
      ++at;
      continue;
    }
    // Written, and no verdict in all that time.
    if (e.outcome) {
      TROUPE_RARE("saver: the master does not say how a step ended");
      give_up(out, e);
      left.insert(key_of(e.what));
      at = snapshots_.erase(at);
      continue;
    }
    TROUPE_RARE("saver: an image is still being written when its time is over");
    e.late = true;
    out.push_back(
        note{about(key_of(e.what), log::level::warning, "image_is_late",
                   fmt::format("step {} of rank {} is still being written to {}, {} after it was "
                               "requested",
                               e.what.step, e.what.rank, e.what.to.place,
                               troupe::in_words(2 * patience_for(e.what))))});
    ++at;
  }
  // Behind the loop: several snapshots of this node may be of one step.
  for (const auto& which : left)
    forget_step_without_snapshots(which);
  answer_drains(out);
  return out;
}

/// Not known is not the same as not complete: the master may have been lost after it decided. The
/// process hears it in these words and must not take the step for lost.
void persister_core::give_up(effects& out, const entry& e) {
  const auto why = fmt::format("step {} of rank {} is not known to be complete: the master did not "
                               "answer",
                               e.what.step, e.what.rank);
  out.push_back(finalize{e.what, failure(errc::unavailable, why)});
  out.push_back(note{about(key_of(e.what), log::level::warning, "step_not_complete", why)});
}

// ---- what is said, and what is kept ----

/// Whole each time, so that a catalog that has never heard of the step can begin with any of them.
void persister_core::say_shard(effects& out, const entry& e) {
  const auto& s = e.what;
  out.push_back(report{
      author_
          .write<ShardReport>(
              s.made_by,
              [&](ShardReport::Builder b) {
                b.setNode(node_);
                write_key(b.initKey(), key_of(s));
                b.setShard(s.to.shard);
                b.setShards(s.to.shards);
                b.setWorldSize(s.world_size);
                b.setSaveWithinMs(static_cast<std::uint64_t>(milliseconds_of(patience_for(s))));
                // Bounded: the reason comes from a file system or a driver, and the message has to
                // fit.
                if (!e.outcome->has_value())
                  return b.setFailed(e.outcome->error().what.substr(0, limits::failure_line_max));
                auto file = b.initWritten();
                file.setName(s.to.file);
                file.setBytes((*e.outcome)->bytes);
                file.setCrc32((*e.outcome)->crc32);
                file.setNode(node_);
              })
          .any()});
}

/// A commit that failed is said as well: the catalog gives the step up at once, with this reason.
void persister_core::say_committed(effects& out, const step_key& which, const step& s) {
  out.push_back(report{author_
                           .write<StepCommitted>(which.made_by,
                                                 [&](StepCommitted::Builder b) {
                                                   b.setNode(node_);
                                                   write_key(b.initKey(), which);
                                                   b.setComplete(s.outcome->has_value());
                                                   b.setShared(s.shared);
                                                   if (!s.outcome->has_value())
                                                     b.setWhy(s.outcome->error().what.substr(
                                                         0, limits::failure_line_max));
                                                 })
                           .any()});
}

/// Any of the step's snapshots will do: they agree on the place and the framework, which is all
/// that a commit needs of them.
const persister_core::entry* persister_core::entry_of(const step_key& which) const {
  const auto found = std::find_if(snapshots_.begin(), snapshots_.end(), [&which](const auto& i) {
    return key_of(i.second.what) == which;
  });
  return found == snapshots_.end() ? nullptr : &found->second;
}

/// So steps_ cannot outgrow snapshots_, whatever a master orders.
void persister_core::forget_step_without_snapshots(const step_key& which) {
  if (entry_of(which) == nullptr)
    steps_.erase(which);
}

/// A late snapshot has no deadline: only the end of its write says something new.
std::optional<instant> persister_core::next_wakeup() const {
  std::optional<instant> first;
  for (const auto& [id, e] : snapshots_)
    if (!e.late && (!first || e.until < *first))
      first = e.until;
  return first;
}

std::string persister_core::in_words() const {
  if (snapshots_.empty())
    return "nothing is to be written";
  const auto writing = std::count_if(snapshots_.begin(), snapshots_.end(),
                                     [](const auto& i) { return !i.second.outcome; });
  return fmt::format("{} image(s) to be written, {} to be finalized", writing,
                     static_cast<std::ptrdiff_t>(snapshots_.size()) - writing);
}

} // namespace troupe::actors
