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
void membership_core::take_over(effects& out, instant now, session_id newcomer,
                                const msg<Hello>& m) {
  const node_name node = m.read()->getNode().cStr();
  const auto known = members_.at(node);
  forget(out, node, taken_in_words(node), false, true);
  auto& who = leaving_[node];
  who = leaver{known.which, std::nullopt, known.stop_within, known.lost_at, newcomer, m};
  if (known.session)
    send_off_leaver(out, now, node, who, *known.session);
  else // A newcomer is heard, so the network is there: the node has the time that it needs to dial.
    who.until = std::min(known.lost_at, now + options_.return_to_deaf_within);
  out.push_back(note{{log::level::story,
                      "node_taken_over",
                      fmt::format("another node supervisor with the name '{}' has come; it takes "
                                  "part once the earlier one has ended its workers, in at most {}",
                                  node, troupe::in_words(who.until - now)),
                      {{"node", node}}}});
}

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
  if (who.which.value == hello->getIncarnation()) {
    if (who.session)
      out.push_back(fence{*who.session, "the node has a newer link"});
    send_off_leaver(out, now, node, who, session);
    return true;
  }
  if (objection(now, *hello))
    return false; // hello() says it
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
    if (who.hello && who.newcomer == session) {
      who.hello.reset();
      return true;
    }
    if (who.session != session)
      continue;
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

void membership_core::succeed_the_late(effects& out, instant now) {
  std::vector<node_name> late;
  for (const auto& [node, who] : leaving_)
    if (who.until <= now)
      late.push_back(node);
  for (const auto& node : late) {
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
    if (const auto why = objection(now, *hello))
      refuse_session(out, who.newcomer, node, *why);
    else
      let_in(out, now, who.newcomer, *who.hello);
  }
  out.push_back(let_go{lost_message(node, taken_in_words(node))});
  tell_if_everyone_left(out, now);
}

} // namespace troupe::actors
