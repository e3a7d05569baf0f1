#include "actors/master/sessions/session/session.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/sessions/session/rights.hpp"
#include "messages/conversations.hpp"
#include "messages/node_names.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace troupe::actors::session {

struct received {
  messages::any_msg message;
};
struct closed {
  ports::link_ending how;
};

} // namespace troupe::actors::session

TROUPE_LOCAL_MESSAGE(troupe::actors::session::received)
TROUPE_LOCAL_MESSAGE(troupe::actors::session::closed)

namespace troupe::actors::session {

namespace {

using tree_request = messages::msg<messages::TreeRequest>;
using tree_report = messages::msg<messages::TreeReport>;

struct state {
  sup::context ctx;
  session_id id;
  ports::peer peer;
  std::string job;
  master_addresses master;
  messages::author author;
  bool is_node = false;
  std::string name;
  std::uint64_t questions = 0;
  struct question {
    sup::promise<tree_report> promise;
    instant until; ///< then the asking side has given up
  };
  std::map<std::uint64_t, question> open_questions;
  std::uint64_t unknown_kinds = 0;
  sup::address<member::handle> member;
  /// Bounded by limits::waits_for_member_max.
  std::deque<messages::any_msg> for_member;
  /// The node spoke for another one: nothing that it sent after that is believed.
  bool distrusted = false;
  right granted = right::look; ///< to a shell
};

using private_handle = sup::widened<handle, received, closed>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void open_link(self_ptr self) {
  const private_handle me{self};
  self->state->peer.link->open({
      [me](messages::any_msg m) { sup::post(me, received{std::move(m)}); },
      [me](ports::link_ending how) { sup::post(me, closed{std::move(how)}); },
  });
}

void put_on_link(self_ptr self, const messages::any_msg& m) {
  // A link that takes no more closes itself; `closed` follows.
  (void)self->state->peer.link->send(m);
}

/// Closes the link of a node that speaks for another node. Every message of a node passes here
/// before it reaches a role.
bool speaks_for_itself(self_ptr self, const messages::any_msg& m) {
  auto& s = *self->state;
  const auto other = s.distrusted ? std::nullopt : messages::speaks_for_another(m, s.name);
  if (!other)
    return !s.distrusted;
  s.distrusted = true;
  sup::tell_log(s.ctx, log::level::warning, "spoke_for_another",
                fmt::format("node {} ({}) sent {} for node '{}' ({}): the message is dropped and "
                            "its link is closed",
                            s.name, s.peer.link->peer(), messages::kind_name(m.kind()), other->node,
                            other->field),
                {{"node", s.name}, {"spoke_for", other->node}});
  s.peer.link->close("a node may speak for itself only");
  return false;
}

void introduce(self_ptr self) {
  auto& s = *self->state;
  if (s.is_node && !speaks_for_itself(self, s.peer.hello.any()))
    return;
  if (s.is_node) {
    sup::send(self, s.master.membership, membership::arrival{s.id, handle{self}, s.peer.hello});
  } else {
    put_on_link(self,
                s.author.write<messages::Welcome>({}, [&](auto b) { b.setJob(s.job); }).any());
  }
}

/// After a restart of the master a node may speak before its member is there: the newest of what
/// it said waits. What is about another generation the member drops.
template<class T>
void hand_to_member(self_ptr self, const messages::msg<T>& m) {
  auto& s = *self->state;
  if (const auto to = s.member.current()) {
    sup::send(self, to, m);
  } else {
    s.for_member.push_back(m.any());
    if (s.for_member.size() > limits::waits_for_member_max)
      s.for_member.pop_front();
  }
}

void take_member(self_ptr self, const attended& a) {
  auto& s = *self->state;
  s.member = a.where;
  for (const auto& said : std::exchange(s.for_member, {}))
    messages::route(said, messages::part_reports{},
                    [self](const auto& m) { hand_to_member(self, m); });
}

void take_answer(self_ptr self, const tree_report& answer) {
  auto& open = self->state->open_questions;
  const auto question = open.find(answer.envelope().correlation);
  if (question == open.end())
    return;
  question->second.promise.deliver(answer);
  open.erase(question);
}

/// A node's messages, to the roles they are for.
void dispatch_from_node(self_ptr self, const messages::any_msg& said) {
  using namespace messages;
  auto& s = *self->state;
  const auto to_catalog = [self, &s](const auto& m) { sup::send(self, s.master.catalog, m); };
  const auto to_diagnosis = [self, &s](const auto& m) { sup::send(self, s.master.diagnosis, m); };
  const auto to_check = [self, &s](const auto& m) { sup::send(self, s.master.network_check, m); };
  const bool known =
      route(said, node_reports{},
            receivers{[self](const auto& m) { hand_to_member(self, m); },
                      // What ends a part ends what is looked into there.
                      [&](const msg<Failed>& m) {
                        hand_to_member(self, m);
                        to_diagnosis(m);
                      },
                      [&](const msg<Stopped>& m) {
                        hand_to_member(self, m);
                        to_diagnosis(m);
                      },
                      [&](const msg<ShardReport>& m) { to_catalog(m); },
                      [&](const msg<StepCommitted>& m) { to_catalog(m); },
                      [&](const msg<ProgressReport>& m) { to_diagnosis(m); },
                      [&](const msg<MergedStacks>& m) { to_diagnosis(m); },
                      [&](const msg<NodeProbed>& m) { to_check(m); },
                      [&](const msg<GroupProbed>& m) { to_check(m); },
                      [self](const tree_report& m) { take_answer(self, m); },
                      [self, &s](const msg<Goodbye>& m) {
                        sup::send(self, s.master.membership,
                                  messages::local<NodeDeparted>(s.ctx.path(), [&](auto b) {
                                    b.setSession(s.id.value);
                                    b.setReason(m.read()->getReason());
                                  }));
                      }});
  if (!known)
    ++s.unknown_kinds;
}

void answer_shell(self_ptr self, const tree_request& question) {
  const auto asked = question.envelope();
  sup::request(
      self, self->state->master.gateway, 2 * limits::request_within, question,
      [self, asked](const tree_report& answer) {
        put_on_link(self, messages::with_correlation(answer, asked.correlation).any());
      },
      [self](const error& e) {
        self->state->peer.link->close("the question could not be answered: " + e.what);
      });
}

/// Diagnosis and the planner, unlike the gateway, say themselves what they could not do; only their
/// own silence is an error.
void answer_stacks(self_ptr self, const messages::msg<messages::StacksRequest>& question) {
  const auto asked = question.envelope();
  sup::request(
      self, self->state->master.diagnosis, limits::stacks_answer_within, question,
      [self, asked](const messages::msg<messages::StacksReport>& answer) {
        put_on_link(self, messages::with_correlation(answer, asked.correlation).any());
      },
      [self, asked](const error& e) {
        put_on_link(
            self, self->state->author
                      .answer<messages::StacksReport>(
                          asked, [&e](auto b) { b.setWhy("diagnosis did not answer: " + e.what); })
                      .any());
      });
}

void answer_scale(self_ptr self, const messages::msg<messages::ScaleRequest>& question) {
  const auto asked = question.envelope();
  sup::request(
      self, self->state->master.recovery, limits::scale_answer_within, question,
      [self, asked](const messages::msg<messages::ScaleReport>& answer) {
        put_on_link(self, messages::with_correlation(answer, asked.correlation).any());
      },
      [self, asked](const error& e) {
        put_on_link(self,
                    self->state->author
                        .answer<messages::ScaleReport>(
                            asked,
                            [&e](auto b) {
                              b.setText("the planner did not answer, and may yet do it: " + e.what);
                            })
                        .any());
      });
}

void dispatch_from_shell(self_ptr self, const messages::any_msg& said) {
  using namespace messages;
  auto& s = *self->state;
  if (right_needed(said, shell_questions{}) == right::change && s.granted != right::change) {
    sup::tell_log(s.ctx, log::level::warning, "no_right",
                  fmt::format("{} ({}) asked for {} on a link that may only look at the job: the "
                              "link is closed",
                              s.name, s.peer.link->peer(), kind_name(said.kind())),
                  {});
    s.peer.link->close("this link may look at the job and not change it");
    return;
  }
  if (!route(said, shell_questions{},
             receivers{[self](const tree_request& m) { answer_shell(self, m); },
                       [self](const msg<StacksRequest>& m) { answer_stacks(self, m); },
                       [self](const msg<ScaleRequest>& m) { answer_scale(self, m); }}))
    ++self->state->unknown_kinds;
}

void ask_node(self_ptr self, const tree_request& question, sup::promise<tree_report> promise) {
  auto& s = *self->state;
  const auto now = sup::now(self);
  while (!s.open_questions.empty() && s.open_questions.begin()->second.until <= now) {
    s.open_questions.begin()->second.promise.deliver(
        sup::fail(errc::unavailable, "the node did not answer in time"));
    s.open_questions.erase(s.open_questions.begin());
  }
  if (!s.is_node || s.open_questions.size() >= limits::open_questions_max) {
    promise.deliver(sup::fail(errc::overloaded, "too many questions are open with this peer"));
    return;
  }
  const auto correlation = ++s.questions;
  s.open_questions.emplace(correlation, state::question{promise, now + limits::request_within});
  put_on_link(self, messages::with_correlation(question, correlation).any());
}

void link_closed(self_ptr self, const ports::link_ending& how) {
  auto& s = *self->state;
  for (auto& [correlation, question] : s.open_questions)
    question.promise.deliver(sup::fail(errc::closed, "the link to the node is gone"));
  s.open_questions.clear();
  if (s.is_node)
    sup::send(self, s.master.membership, membership::link_lost(s.ctx.path(), s.id, how));
  sup::stop(self);
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, session_id id,
                                     ports::peer peer, std::string job, master_addresses master) {
  sup::harden(self, ctx, [self](const sup::stop_order&) {
    self->state->peer.link->close("the master ends this session");
  });
  auto hello = peer.hello.read();
  const bool is_node = hello->getRole() == messages::Hello::Role::NODE;
  std::string name = hello->getNode().cStr();
  const auto granted = hello->getChangesJob() ? right::change : right::look;
  messages::author author(ctx.path(), master.commands_as);
  self->state.emplace(state{ctx,
                            id,
                            std::move(peer),
                            std::move(job),
                            std::move(master),
                            std::move(author),
                            is_node,
                            std::move(name),
                            0,
                            {},
                            0,
                            {},
                            {},
                            false,
                            granted});
  introduce(self);
  open_link(self);
  return {
      [self](sup::describe) {
        const auto& s = *self->state;
        return sup::described(self, fmt::format("{} {} at {}", s.is_node ? "node" : "shell", s.name,
                                                s.peer.link->peer()));
      },
      [self](const messages::any_msg& m) { put_on_link(self, m); },
      [self](const messages::msg<messages::EndLink>& m) {
        self->state->peer.link->close(m.read()->getReason().cStr());
      },
      [self](const attended& a) { take_member(self, a); },
      [self](const tree_request& question) -> sup::answer<tree_report> {
        auto promise = sup::promise_answer<tree_report>(self);
        ask_node(self, question, promise);
        return promise;
      },
      [self](const received& r) {
        if (!self->state->is_node)
          dispatch_from_shell(self, r.message);
        else if (speaks_for_itself(self, r.message))
          dispatch_from_node(self, r.message);
        self->state->peer.link->taken();
      },
      [self](const closed& c) { link_closed(self, c.how); },
  };
}

} // namespace

handle start(sup::context& ctx, session_id id, ports::peer peer, const std::string& job,
             const master_addresses& master) {
  const auto me = ctx.spawn<handle>(behave, ctx, id, std::move(peer), job, master);
  // Means nothing after a link that ended as it should.
  sup::when_ended(me, [id, name = ctx.path(), membership = master.membership] {
    sup::post(membership,
              membership::link_lost(name, id, {ports::link_end::closed, "its session ended"}));
  });
  return me;
}

} // namespace troupe::actors::session
