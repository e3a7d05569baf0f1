#include "actors/master/catalog/catalog_core.hpp"

#include "actors/limits.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// What a file takes in a message beside its names.
constexpr std::size_t file_overhead = 64;

/// Names the first and counts the others: with one rank's number a user finds its log.
std::string missing_shards(std::uint32_t shards, const std::set<std::uint32_t>& there,
                           std::uint64_t step) {
  std::uint32_t first = 0;
  while (there.count(first) != 0)
    ++first;
  const auto others = shards - static_cast<std::uint32_t>(there.size()) - 1;
  return fmt::format(
      "shard {} of {} of step {}{}", first, shards, step,
      others == 0 ? " was" : fmt::format(" and {} other{} were", others, others == 1 ? "" : "s"));
}

template<class Files>
std::set<std::uint32_t> numbers_of(const Files& files) {
  std::set<std::uint32_t> all;
  for (const auto& [shard, f] : files)
    all.insert(shard);
  return all;
}

/// What no saver can have meant.
std::optional<std::string> validation_error(ShardReport::Reader r) {
  const auto step = r.getKey().getStep();
  const auto* node = r.getNode().cStr();
  if (r.getShards() == 0 || r.getShards() > limits::shards_max)
    return fmt::format("node {} says that step {} has {} shards", node, step, r.getShards());
  if (r.getShard() >= r.getShards())
    return fmt::format("node {} reports shard {} of {} of step {}", node, r.getShard(),
                       r.getShards(), step);
  return std::nullopt;
}

} // namespace

// ---- reports ----

/// Reports repeat, on each new link and after a crash of the saver: so the answer depends on where
/// the step stands. A step that has ended comes first, as its answer is final.
catalog_core::effects catalog_core::shard_reported(instant now, const msg<ShardReport>& m) {
  effects out;
  auto r = m.read();
  const auto which = key_of(r->getKey());
  const node_name node = r->getNode().cStr();
  if (const auto ended = finalized_.find(which); ended != finalized_.end()) {
    TROUPE_RARE("catalog: a shard is reported of a step that has ended");
    out.push_back(say{{node}, finalized(which, ended->second)});
    return out;
  }
  if (const auto why = validation_error(*r)) {
    out.push_back(say{{node}, finalized(which, {false, *why})});
    return out;
  }
  give_up_older(out, which);
  auto at = open_.find(which);
  if (at == open_.end())
    at = open(out, now, which, *r);
  auto& s = at->second;
  s.reporters.insert(node);
  came_back(node);
  // One number and two meanings: no manifest could be right for both.
  if (s.shards != r->getShards() || s.world_size != r->getWorldSize())
    finalize(out, at, false,
             fmt::format("step {} has {} shards of {} ranks, and node {} says {} of {}", which.step,
                         s.shards, s.world_size, node, r->getShards(), r->getWorldSize()));
  else if (r->isFailed())
    finalize(out, at, false,
             fmt::format("shard {} of {} of step {} was not written on node {}: {}", r->getShard(),
                         s.shards, which.step, node, r->getFailed().cStr()));
  else
    take_file(out, now, at, *r);
  return out;
}

/// What an older generation has not written will not be written any more: its process is gone.
void catalog_core::give_up_older(effects& out, const step_key& newer) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto older = at++;
    if (older->first.place != newer.place || !(older->first.made_by < newer.made_by) ||
        older->second.at != phase::gathering)
      continue;
    TROUPE_RARE("catalog: a newer generation saves before an older one's step is complete");
    // Some node has committed it under an earlier master, so all its shards were there.
    if (older->second.is_complete())
      end_without_followers(out, older);
    else
      finalize(out, older, false,
               fmt::format("{} not written before generation {} saved",
                           missing_shards(older->second.shards, numbers_of(older->second.files),
                                          older->first.step),
                           count_of(newer.made_by)));
  }
}

catalog_core::open_steps::iterator
catalog_core::open(effects& out, instant now, const step_key& which, ShardReport::Reader first) {
  // A job that saves faster than its disk writes loses the oldest: the newer a step is, the less
  // training is lost with it.
  if (open_.size() >= limits::steps_open_max) {
    const auto oldest =
        std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
          return a.second.since < b.second.since;
        });
    finalize(out, oldest, false,
             fmt::format("step {} was given up for step {}: {} steps are being saved at once",
                         oldest->first.step, which.step, open_.size()));
  }
  step s;
  s.shards = first.getShards();
  s.world_size = first.getWorldSize();
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(limits::save_within_max);
  s.save_within = std::chrono::milliseconds(
      std::min(first.getSaveWithinMs(), static_cast<std::uint64_t>(most.count())));
  s.since = now;
  // From the first report on: ranks save at the same place of their program, so the others are not
  // far.
  s.until = now + s.save_within;
  return open_.emplace(which, std::move(s)).first;
}

/// A shard may be written twice, by a saver that crashed and found the snapshot again. The newest
/// telling counts, as that is what lies in the directory.
void catalog_core::take_file(effects& out, instant now, open_steps::iterator at,
                             ShardReport::Reader report) {
  auto& s = at->second;
  auto written = report.getWritten();
  const file f{
      written.getName().cStr(), {written.getBytes(), written.getCrc32()}, report.getNode().cStr()};
  const auto known = s.files.find(report.getShard());
  const bool same = known != s.files.end() && known->second.name == f.name &&
                    known->second.what == f.what && known->second.node == f.node;
  // A generation has each rank once, so one of the two is mistaken. In a shared directory either
  // may have overwritten the other.
  if (known != s.files.end() && known->second.node != f.node)
    return finalize(out, at, false,
                    fmt::format("shard {} of {} of step {} was written by node {} and by node {}",
                                report.getShard(), s.shards, at->first.step, known->second.node,
                                f.node));
  s.files[report.getShard()] = f;
  // The same report once more: the saver or its link was gone, and with it perhaps the order.
  if (same && s.at != phase::gathering)
    return ask_again(out, at->first, s, f.node);
  // What was written anew after all were there is what the manifest must name.
  if (s.files.size() == s.shards && s.at != phase::following)
    // One that an earlier master had completed: the others only follow.
    return s.is_complete() ? become_following(out, now, at) : become_committing(out, now, at);
  if (s.at == phase::gathering)
    hurry(out, now, at);
}

/// Its saver crashed, or its link did: it may not have heard.
void catalog_core::ask_again(effects& out, const step_key& which, const step& s,
                             const node_name& node) {
  const bool awaited =
      s.at == phase::committing ? node == s.committer : followers(s).count(node) != 0;
  TROUPE_RARE_IF(awaited, "catalog: a node is asked again to complete a step");
  if (awaited)
    out.push_back(say{{node}, commit_step(which, s)});
}

catalog_core::effects catalog_core::step_committed(instant now, const msg<StepCommitted>& m) {
  effects out;
  auto r = m.read();
  const auto which = key_of(r->getKey());
  const node_name node = r->getNode().cStr();
  const auto at = open_.find(which);
  // A saver reports its shard before it says this. If the step is finalized, the answer to that
  // report has said so.
  if (at == open_.end())
    return out;
  auto& s = at->second;
  came_back(node);
  // Only a node whose answer is awaited can fail the step; an earlier committer's late one cannot.
  if (!r->getComplete()) {
    if (s.at == phase::committing && node == s.committer)
      finalize(out, at, false,
               fmt::format("step {} could not be made complete on node {}: {}", which.step, node,
                           r->getWhy().cStr()));
    else if (s.at == phase::following && followers(s).count(node) != 0)
      finalize(
          out, at, false,
          fmt::format("step {} is complete on node {}, and could not be made so on node {}: {}",
                      which.step, *s.committed.begin(), node, r->getWhy().cStr()));
    return out;
  }
  s.committed.insert(node);
  if (r->getShared() && shared_places_.insert(which.place).second &&
      shared_places_.size() > limits::checkpoint_places_max)
    shared_places_.erase(shared_places_.begin());
  TROUPE_RARE_IF(s.at == phase::gathering, "catalog: an earlier master had a step committed");
  if (s.at == phase::committing)
    become_following(out, now, at);
  else if (s.at == phase::following && followers(s).empty())
    finalize(out, at, true, {});
  else if (s.at == phase::following)
    hurry(out, now, at);
  else if (s.at == phase::gathering)
    // An earlier master had all shards of it. The other nodes that have not heard how it ended
    // report their shards again now; nodes that have heard it do not, and are not waited for.
    s.until = std::min(s.until, now + limits::commit_within);
  return out;
}

// ---- transitions ----

/// Only one node commits at first. In a shared directory two at once would write one manifest and
/// remove older steps; whether a directory is shared, the master cannot see.
void catalog_core::become_committing(effects& out, instant now, open_steps::iterator at) {
  auto& s = at->second;
  // Refused here: a message that is too large would end the link of each node that it is sent to.
  std::size_t bytes = 0;
  for (const auto& [shard, f] : s.files)
    bytes += f.name.size() + f.node.size() + file_overhead;
  if (bytes > limits::step_files_max)
    return finalize(out, at, false,
                    fmt::format("step {} has {} shards; they are too many for one message",
                                at->first.step, s.shards));
  s.at.become(phase::committing);
  // Also those that were asked before a shard was written anew: what they have committed is not
  // that.
  s.asked.clear();
  s.give_up_at = now + std::max<duration>(s.save_within, limits::commit_within);
  ask_next_committer(out, now, at);
}

void catalog_core::ask_next_committer(effects& out, instant now, open_steps::iterator at) {
  auto& s = at->second;
  // In the order of shards: of a step that is saved again the same one. A lost node only if there
  // is no other: it may be back.
  const auto next_of = [&s](const auto& out_of_the_question) {
    return std::find_if(s.files.begin(), s.files.end(), [&](const auto& f) {
      return s.asked.count(f.second.node) == 0 && !out_of_the_question(f.second.node);
    });
  };
  auto next = next_of([this](const node_name& node) { return lost_.count(node) != 0; });
  if (next == s.files.end())
    next = next_of([](const node_name&) { return false; });
  if (next == s.files.end()) {
    // A disk that is slow is no reason to lose what is written: any that was asked may still
    // answer, unless it is lost.
    const bool may_answer = any_not_lost(s.asked);
    if (may_answer && now < s.give_up_at) {
      s.until = s.give_up_at;
      return;
    }
    const auto patience = std::max<duration>(s.save_within, limits::commit_within);
    return finalize(
        out, at, false,
        fmt::format("step {} is written, and whether it is complete is not known: {} node{} {}",
                    at->first.step, s.asked.size(), s.asked.size() == 1 ? "" : "s",
                    may_answer ? "did not answer within " + troupe::in_words(patience)
                               : "that could complete it were lost"));
  }
  s.committer = next->second.node;
  s.asked.insert(s.committer);
  s.until = now + (lost_.count(s.committer) != 0 ? duration(limits::lost_writer_within)
                                                 : duration(limits::commit_within));
  out.push_back(say{{s.committer}, commit_step(at->first, s)});
}

void catalog_core::become_following(effects& out, instant now, open_steps::iterator at) {
  auto& s = at->second;
  s.at.become(phase::following);
  const auto whom = followers(s);
  // Of one node, or all have committed under an earlier master.
  if (whom.empty())
    return finalize(out, at, true, {});
  // No follower can do it in the place of another, and each may have much to write before.
  s.until = now + std::max<duration>(s.save_within, limits::commit_within);
  out.push_back(say{{whom.begin(), whom.end()}, commit_step(at->first, s)});
  hurry(out, now, at);
}

/// Final. All that reported hear it, also after a failure: their snapshots must not be overwritten
/// before, and their processes may wait for the outcome.
void catalog_core::finalize(effects& out, open_steps::iterator at, bool complete, std::string why) {
  const auto which = at->first;
  const auto told = at->second.reporters;
  out.push_back(note{
      {log::level::info,
       complete ? "step_settled" : "step_given_up",
       complete ? fmt::format("step {} is complete at {} ({} shard{})", which.step, which.place,
                              at->second.shards, at->second.shards == 1 ? "" : "s")
                : fmt::format("step {} is given up at {}: {}", which.step, which.place, why),
       {{"step", static_cast<std::int64_t>(which.step)},
        {"place", which.place},
        {"generation", static_cast<std::int64_t>(which.made_by.value)}}}});
  open_.erase(at);
  if (complete)
    last_complete_ = fmt::format("step {} at {}", which.step, which.place);
  // The oldest is the one that is least likely to be asked for again.
  if (finalized_in_order_.size() >= limits::steps_finalized_kept) {
    finalized_.erase(finalized_in_order_.front());
    finalized_in_order_.pop_front();
  }
  const ending as{complete, std::move(why), open_from(which)};
  const auto& how = finalized_.emplace(which, as).first->second;
  finalized_in_order_.push_back(which);
  out.push_back(say{{told.begin(), told.end()}, finalized(which, how)});
}

// ---- time ----

catalog_core::effects catalog_core::tick(instant now) {
  effects out;
  for (auto at = open_.begin(); at != open_.end();) {
    const auto due = at++;
    if (due->second.until <= now)
      time_is_up(out, now, due);
  }
  return out;
}

/// What the end of a wait means depends on what is sure by then: a missing shard never comes, a
/// committer can be replaced, and a step that is complete somewhere stays so.
void catalog_core::time_is_up(effects& out, instant now, open_steps::iterator at) {
  const auto& s = at->second;
  if (s.at == phase::committing)
    return ask_next_committer(out, now, at);
  // Of one that is complete somewhere the shards that were not reported again do not count.
  if (s.at == phase::gathering && !s.is_complete()) {
    const auto lost = lost_writer(at->first, s);
    return finalize(out, at, false,
                    fmt::format("{} not written {}",
                                missing_shards(s.shards, numbers_of(s.files), at->first.step),
                                lost ? fmt::format("before node {} was lost", *lost)
                                     : "within " + troupe::in_words(s.save_within)));
  }
  end_without_followers(out, at);
}

/// In one directory of all nodes it is complete, whatever has become of them. A node with a
/// directory of its own may come back with it, and without its part of the step the others could
/// not go on from there: then it must not have been called complete, and nothing older removed.
void catalog_core::end_without_followers(effects& out, open_steps::iterator at) {
  const auto& which = at->first;
  const auto& s = at->second;
  if (shared_places_.count(which.place) != 0)
    return finalize(out, at, true, {});
  TROUPE_RARE("catalog: a node is lost before it completes a step in its own directory");
  const auto missing = followers(s);
  const auto where =
      missing.empty() ? "directories of nodes that have not reported"
                      : fmt::format("directory of node {}, which {}", *missing.begin(),
                                    lost_.count(*missing.begin()) != 0 ? "was lost before"
                                                                       : "did not answer in time");
  finalize(out, at, false,
           fmt::format("step {} is complete on node {}, and not known to be so in the {}",
                       which.step, *s.committed.begin(), where));
}

std::optional<instant> catalog_core::next_wakeup() const {
  std::optional<instant> first;
  for (const auto& [which, s] : open_)
    if (!first || s.until < *first)
      first = s.until;
  return first;
}

/// Nodes that wrote and have not committed: where all share a directory they find the manifest
/// there and only say so.
std::set<node_name> catalog_core::followers(const step& s) {
  std::set<node_name> all;
  for (const auto& [shard, f] : s.files)
    if (s.committed.count(f.node) == 0)
      all.insert(f.node);
  return all;
}

} // namespace troupe::actors
