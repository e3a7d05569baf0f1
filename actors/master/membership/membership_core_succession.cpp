// How membership_core gives a node's name to a newcomer: not before the node that had it has ended
// its workers, since two nodes of one name would train the same ranks.

#include "actors/master/membership/membership_core.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::actors {

using namespace messages;

namespace {

std::string taken_in_words(const node_name& node) {
  return fmt::format("another node supervisor with the name '{}' has taken its place", node);
}

} // namespace

/// The job knows at once that the node is lost, and its other nodes stop; the generation ends, and
/// the newcomer is let in, when the node has said Goodbye.
/// What this protects from: a second launcher under a node's name used to take its place at once,
/// and two processes of a rank ran for as long as the first one's workers took to end, or without
/// end where its supervisor was stopped.
void membership_core::take_over(effects& out, instant now, session_id newcomer,
                                const msg<Hello>& m) {
  const node_name node = m.read()->getNode().cStr();
  const auto known = members_.at(node);
  TROUPE_RARE_IF(known.session, "membership: a name is taken whose node has a link");
  TROUPE_RARE_IF(!known.session, "membership: a name is taken whose node is away");
  // Lost, so that the planner and the siblings act now; `may_run`, so that its member stays and the
  // generation does not end before the workers have. For good: the name belongs to the newcomer.
  forget(out, node, taken_in_words(node), false, true);
  auto& who = leaving_[node];
  // The hello is kept whole: the newcomer is let in later as if it had come then.
  who = leaver{known.which, std::nullopt, known.stop_within, known.lost_at, newcomer, m};
  if (known.session)
    send_off_leaver(out, now, node, who, *known.session);
  else // A newcomer is heard, so the network is there: the node has the time that it needs to dial.
    who.until = std::min(known.lost_at, now + options_.return_to_isolated_within);
  out.push_back(note{{log::level::notice,
                      "node_taken_over",
                      fmt::format("another node supervisor with the name '{}' has come; it takes "
                                  "part once the earlier one has ended its workers, in at most {}",
                                  node, troupe::in_words(who.until - now)),
                      {{"node", node}}}});
}

/// The link stays open: on it comes the Goodbye that says that the workers are gone. The time is
/// that of the workers, of a kill, and of the way.
void membership_core::send_off_leaver(effects& out, instant now, const node_name& node, leaver& who,
                                      session_id session) {
  who.session = session;
  who.until = now + who.stop_within + limits::kill_within + limits::farewell_within;
  out.push_back(send_off{session, refusal_message(refusal{taken_in_words(node)})});
}

/// A hello under a name that is being taken over: of the newcomer, once more, of a newer one, or of
/// the node itself that was away.
bool membership_core::joins_succession(effects& out, instant now, session_id session,
                                       const msg<Hello>& m) {
  auto hello = m.read();
  const node_name node = hello->getNode().cStr();
  const auto found = leaving_.find(node);
  if (found == leaving_.end())
    return false;
  auto& who = found->second;
  // The earlier node itself was away and is back. Its incarnation is fenced, and a plain refusal
  // would end its link and with that the only way to hear when its workers have ended.
  if (who.which.value == hello->getIncarnation()) {
    if (who.session)
      out.push_back(fence{*who.session, "the node has a newer link"});
    send_off_leaver(out, now, node, who, session);
    return true;
  }
  if (validation_error(now, *hello))
    return false; // hello() says it
  // One successor at a time. The same node on a newer link replaces its older link; a third
  // launcher is the newest that claims the name, so the second one has lost it.
  if (who.hello && who.newcomer != session) {
    if (who.hello->read()->getIncarnation() == hello->getIncarnation())
      out.push_back(fence{who.newcomer, "the node has a newer link"});
    else
      refuse_session(out, who.newcomer, node, refusal{taken_in_words(node)});
  }
  who.newcomer = session;
  who.hello = m;
  return true;
}

/// A link has ended, or the node behind it has said Goodbye. `silent`: why it was taken for dead.
bool membership_core::ends_succession(effects& out, instant now, session_id session,
                                      const std::optional<std::string>& silent) {
  for (auto& [node, who] : leaving_) {
    // The newcomer is gone; the earlier node ends its workers all the same, and the name is free
    // then.
    if (who.hello && who.newcomer == session) {
      who.hello.reset();
      return true;
    }
    if (who.session != session)
      continue;
    // Silence is no proof that the workers have ended: a stopped supervisor's go on. To wait longer
    // proves nothing either, so the job goes on, and one line says what may run twice.
    if (silent)
      out.push_back(note{{log::level::warning,
                          "node_unanswering",
                          fmt::format("the earlier node supervisor with the name '{}' does not "
                                      "answer ({}): its workers may run beside those of the new "
                                      "one until it goes on or is killed",
                                      node, *silent),
                          {{"node", node}, {"reason", *silent}}}});
    succeed(out, now, node_name{node});
    return true;
  }
  return false;
}

/// A bound for a supervisor that answers and does not get done. Without it one node could hold up
/// the whole job, whose other nodes have stopped for it.
void membership_core::succeed_the_late(effects& out, instant now) {
  std::vector<node_name> late;
  for (const auto& [node, who] : leaving_)
    if (who.until <= now)
      late.push_back(node);
  for (const auto& node : late) {
    TROUPE_RARE("membership: the time of a node whose name was taken is over");
    // Without a session it was away and has not come back: that was told when its link ended.
    if (const auto session = leaving_.at(node).session) {
      out.push_back(note{{log::level::warning,
                          "node_unanswering",
                          fmt::format("the earlier node supervisor with the name '{}' has not said "
                                      "in time that its workers have ended: they may run beside "
                                      "those of the new one",
                                      node),
                          {{"node", node}}}});
      out.push_back(fence{*session, "its time to end its workers is over"});
    }
    succeed(out, now, node);
  }
}

/// In this order: when the generation ends, the planner knows of the newcomer.
void membership_core::succeed(effects& out, instant now, const node_name& node) {
  const auto who = leaving_.at(node);
  leaving_.erase(node);
  if (who.hello) {
    auto hello = who.hello->read();
    // Asked again, since time has passed: the job may be full, or its command known by now.
    if (const auto why = validation_error(now, *hello))
      refuse_session(out, who.newcomer, node, *why);
    else
      let_in(out, now, who.newcomer, *who.hello);
  }
  out.push_back(let_go{lost_message(node, taken_in_words(node))});
  tell_if_everyone_left(out, now);
}

} // namespace troupe::actors
