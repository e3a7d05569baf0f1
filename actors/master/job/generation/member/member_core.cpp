#include "actors/master/job/generation/member/member_core.hpp"

#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

/// "rank 3 (local rank 1, pid 4711) failed: signal 9 (SIGKILL)"
std::string first_in_words(capnp::List<WorkerFailure>::Reader failures, const node_name& node) {
  if (failures.size() == 0)
    return fmt::format("node {} reports a failure", node);
  const auto f = failures[0];
  if (f.getPid() == 0)
    return fmt::format("node {}: {}", node, f.getMessage().cStr());
  return fmt::format("rank {} (node {}, local rank {}, pid {}) failed: {}", f.getRank(), node,
                     f.getLocalRank(), f.getPid(), f.getMessage().cStr());
}

} // namespace

member_core::member_core(member_options options, member_world world, messages::author author,
                         instant now)
    : options_(std::move(options)), world_(std::move(world)), author_(std::move(author)),
      current_(world_.proposed.envelope().about),
      phase_(world_.start ? phase::recalled : phase::preparing),
      obey_until_(now + (world_.start ? options_.recall_within : options_.obey_within)) {}

/// A recalled node trains, so it is not told to prepare: that would end its workers.
member_core::effects member_core::begin() {
  if (phase_ == phase::recalled)
    return {};
  return {direct{prepare_message()}};
}

// ---- the node's link ----

/// Here everything is made up for that a lost link has swallowed, in both directions: what the node
/// was not told is told again, and what it could not say is read from its state.
member_core::effects member_core::present(instant now, const msg<NodePresent>& m) {
  effects out;
  // Before the phase is looked at: whatever this node says is not about the processes that the
  // member stands for.
  if (is_another(m)) {
    TROUPE_RARE("member: another node supervisor of its node's name is here");
    finish(out, fmt::format("node {} is lost: a newer node supervisor of this name is here",
                            options_.node));
    return out;
  }
  switch (phase_) {
  case phase::recalled:
    become(phase::running);
    compare(out, m);
    break;
  case phase::preparing:
  case phase::ready: {
    auto body = m.read();
    const auto state = body->getState();
    const bool ready = generation{state.getGeneration()} == current_ &&
                       state.getPhase() == NodeState::Phase::PREPARED;
    if (!ready && phase_ == phase::ready) {
      // Its agent has fallen, and the store that it may have opened is gone.
      if (!std::exchange(failed_, true))
        out.push_back(fail_early{fmt::format("node {} lost what it had prepared", options_.node)});
      break;
    }
    // Prepare may have been lost with the link. Its time does not begin anew.
    if (!ready) {
      TROUPE_RARE("member: Prepare is repeated on a new link");
      out.push_back(direct{prepare_message()});
      break;
    }
    // The answer was lost with the link, and the hello says the same.
    const auto answer = author_.write<Prepared>(current_, [&](auto b) {
      b.setNode(options_.node);
      b.setStorePort(state.getStorePort());
      b.setStoreHosted(state.getStoreHosted());
    });
    return prepared(answer);
  }
  case phase::running:
    compare(out, m);
    break;
  case phase::stopping:
    // Only now the node hears of the order, so its time to obey begins now.
    TROUPE_RARE("member: Stop is repeated on a new link");
    if (std::exchange(absent_, false))
      obey_until_ = now + options_.obey_within;
    out.push_back(direct{stop_message()});
    break;
  case phase::ended:
    break;
  }
  return out;
}

/// Its processes are gone with its predecessor, which membership was not there to see go.
/// A generation of which a place was filled anew cannot go on, though each node of it is present.
bool member_core::is_another(const msg<NodePresent>& m) const {
  return options_.which != incarnation{} &&
         options_.which != incarnation{m.read()->getIncarnation()};
}

/// What the node says of itself, against what it was told: its processes may have failed, finished
/// or been lost while it had no link.
void member_core::compare(effects& out, const msg<NodePresent>& m) {
  auto present = m.read();
  const auto state = present->getState();
  const generation its{state.getGeneration()};
  if (its > current_) {
    // The journal has lost its tail. No process has failed, so no budget pays for that.
    if (!std::exchange(failed_, true))
      out.push_back(fail_early{fmt::format("node {} is in generation {} already, which the journal "
                                           "of this master does not have",
                                           options_.node, count_of(its))});
    return;
  }
  // It has nothing of this generation, which it was told to start: what ran there is gone, and the
  // other workers wait for it. A failure of the node itself, which its budget pays for.
  TROUPE_RARE_IF(its != current_, "member: a node is back and has lost its workers");
  if (its != current_)
    return take_failure(out, lost_workers(),
                        fmt::format("node {}: the node supervisor lost its "
                                    "workers",
                                    options_.node));
  switch (state.getPhase()) {
  // Start was lost with the link, or with an earlier master.
  case NodeState::Phase::PREPARED:
    TROUPE_RARE("member: Start was lost with the link or an earlier master");
    return tell_start(out);
  // A planner that began anew has not heard it; nor does a node supervisor that began anew know the
  // owners of ranks.
  case NodeState::Phase::RUNNING:
    out.push_back(direct{world_.owners.any()});
    out.push_back(
        report{author_.write<Running>(current_, [&](auto b) { b.setNode(options_.node); }).any()});
    return;
  case NodeState::Phase::FAILED:
    TROUPE_RARE("member: a failure was lost with the link, and the hello says it");
    return take_failure(out, state_as_failed(state),
                        first_in_words(state.getFailures(), options_.node));
  case NodeState::Phase::FINISHED:
    TROUPE_RARE("member: Finished was lost with the link, and the hello says it");
    out.push_back(report{author_
                             .write<Finished>(current_,
                                              [&](auto b) {
                                                b.setNode(options_.node);
                                                b.setAsked(state.getAsked());
                                              })
                             .any()});
    return finish(out, std::nullopt);
  default:
    TROUPE_RARE("member: a node is back and has ended the generation already");
    // An earlier master told it to, and fell before it formed the next generation.
    if (!std::exchange(failed_, true))
      out.push_back(fail_early{fmt::format("node {} has ended generation {} already", options_.node,
                                           count_of(current_))});
  }
}

/// The one end that needs no word of the node: nothing more can be heard of it.
member_core::effects member_core::lost(const msg<NodeLost>& m) {
  effects out;
  if (replaced_) // said by fail_early
    finish(out, std::nullopt);
  else
    finish(out, fmt::format("node {} is lost: {}", options_.node, m.read()->getReason().cStr()));
  return out;
}

/// Two nodes of one name must not train the same ranks. So the siblings end now, but this member,
/// and with it the generation, stays until the earlier node's workers are gone or its time is over.
member_core::effects member_core::replaced(const std::string& reason) {
  effects out;
  if (phase_ == phase::ended || std::exchange(replaced_, true))
    return out;
  TROUPE_RARE("member: its node's name is taken");
  if (!std::exchange(failed_, true))
    out.push_back(fail_early{fmt::format("node {} is lost: {}", options_.node, reason)});
  return out;
}

// ---- what the node says ----

/// What older generations said may still be on its way while this one forms.
bool member_core::about_this(const any_msg& m) const {
  return m.envelope().about == current_ && phase_ != phase::ended;
}

/// Repeats go to rendezvous too: group rank 0 may have opened another store since.
member_core::effects member_core::prepared(const msg<Prepared>& m) {
  effects out;
  if (!about_this(m.any()) || (phase_ != phase::preparing && phase_ != phase::ready))
    return out;
  if (phase_ == phase::preparing)
    become(phase::ready);
  out.push_back(tell_rendezvous{m});
  return out;
}

/// Kept even if it cannot be sent: the next link may need it.
member_core::effects member_core::start(const msg<Start>& m) {
  effects out;
  if (!about_this(m.any()) || world_.start)
    return out;
  world_.start = m;
  // An order to stop came first: workers that start now would only have to end again.
  if (phase_ != phase::ready)
    return out;
  become(phase::running);
  tell_start(out);
  return out;
}

/// The owners of ranks come second: workers that wait cost more than a snapshot that a holder
/// refuses meanwhile, and of a large world they are the larger message by far.
void member_core::tell_start(effects& out) const {
  out.push_back(direct{world_.start->any()});
  out.push_back(direct{world_.owners.any()});
}

/// No phase changes with it: a member told to start counts as running from then on.
member_core::effects member_core::running(const msg<Running>& m) {
  if (!about_this(m.any()))
    return {};
  return {report{m.any()}};
}

member_core::effects member_core::end_answer(const msg<EndAnswer>& m) {
  if (!about_this(m.any()))
    return {};
  return {report{m.any()}};
}

member_core::effects member_core::failed(const msg<Failed>& m) {
  effects out;
  if (about_this(m.any()))
    take_failure(out, m.any(), first_in_words(m.read()->getFailures(), options_.node));
  return out;
}

/// Its part is done, and the end is good, though the other nodes still train. What becomes of the
/// node from now on does not concern the generation.
member_core::effects member_core::finished(const msg<Finished>& m) {
  effects out;
  if (!about_this(m.any()))
    return out;
  out.push_back(report{m.any()});
  finish(out, std::nullopt);
  return out;
}

member_core::effects member_core::stopped(const msg<Stopped>& m) {
  effects out;
  if (!about_this(m.any()))
    return out;
  node_clean_ = true;
  TROUPE_RARE_IF(phase_ != phase::stopping, "member: a node has ended its part unasked");
  out.push_back(report{m.any()});
  // Membership says it when the earlier node is gone, at the same time as it lets the newcomer in:
  // so the planner knows of the newcomer when it judges the generation.
  if (replaced_)
    return out;
  if (phase_ == phase::stopping)
    finish(out, std::nullopt);
  // Not asked, and nothing is left: a node that is leaving, or one that an earlier master has told.
  else if (!std::exchange(failed_, true))
    out.push_back(fail_early{fmt::format("node {} has ended generation {} by itself", options_.node,
                                         count_of(current_))});
  return out;
}

/// Each telling is reported, since the ledger knows what is new; the siblings are told once. In
/// this order, so that the planner knows of the failure before any end of the generation.
void member_core::take_failure(effects& out, const any_msg& said, const std::string& why) {
  out.push_back(report{said});
  if (!std::exchange(failed_, true))
    out.push_back(fail_early{why});
}

// ---- the end ----

/// Three ends without a wait: the tree goes down (the node is not to notice), the verdict reaches
/// the node by itself, or its processes are gone already. In all other cases an end of this member
/// would say that the node is free for the next generation, which is not known yet.
member_core::effects member_core::ordered(instant now, const sup::stop_order& order) {
  effects out;
  if (phase_ == phase::ended)
    return out;
  // A node whose name was taken is waited for even if it is clean: `lost` tells of the newcomer.
  const bool waits_for_node = !node_clean_ || replaced_;
  if (order.because == sup::stop_order::cause::shutdown || order.detail == verdict_follows ||
      !waits_for_node) {
    finish(out, std::nullopt);
    return out;
  }
  TROUPE_RARE_IF(phase_ == phase::recalled, "member: a node is to stop before it is back");
  stop_reason_ = order.reason;
  // A node that has not come back yet may come back running: it is waited for as long as before.
  absent_ = phase_ == phase::recalled;
  // A second order brings no new time.
  if (phase_ != phase::stopping) {
    become(phase::stopping);
    if (!absent_)
      obey_until_ = now + options_.obey_within;
  }
  out.push_back(direct{stop_message()});
  return out;
}

/// A member gives no node up by itself: then the planner would count on a node that the generation
/// has lost. It asks membership, and NodeLost comes back to both.
member_core::effects member_core::tick(instant now) {
  effects out;
  if (!obey_until_ || now < *obey_until_)
    return out;
  // Membership never heard of this node, so it could not say that it is lost.
  if (phase_ == phase::recalled || absent_) {
    TROUPE_RARE("member: a node does not come back to a restarted master");
    finish(out, fmt::format("node {} did not come back to the restarted master", options_.node));
    return out;
  }
  // Asked again, should membership know nothing of the node by then.
  obey_until_ = now + options_.obey_within;
  out.push_back(evict{fmt::format("it did not {} within {}",
                                  phase_ == phase::stopping ? "end its processes" : "get ready",
                                  troupe::in_words(options_.obey_within))});
  return out;
}

std::optional<instant> member_core::next_wakeup() const {
  return obey_until_;
}

void member_core::finish(effects& out, std::optional<std::string> why) {
  if (phase_ == phase::ended)
    return;
  become(phase::ended);
  out.push_back(end{std::move(why)});
}

/// A node has its time to get ready, to end its processes, or to come back; it runs for as long as
/// it likes.
void member_core::become(phase next) {
  phase_.become(next);
  if (phase_.in(phase::running, phase::ready, phase::ended))
    obey_until_.reset();
}

} // namespace troupe::actors
