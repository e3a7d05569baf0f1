#include "actors/node_supervisor/checkpoint_saver/persister/persister.hpp"

#include "actors/node_supervisor/addresses.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>

namespace troupe::actors::persister {

struct persist_requested {
  ckpt::persist_request snapshot;
};
struct written {
  ckpt::persist_request snapshot;
  result<ports::receipt> how;
};
struct committed {
  step_key which;
  result<ckpt::completed> how;
};
struct looked {
  std::uint64_t question = 0;
};

} // namespace troupe::actors::persister

TROUPE_LOCAL_MESSAGE(troupe::actors::persister::persist_requested)
TROUPE_LOCAL_MESSAGE(troupe::actors::persister::written)
TROUPE_LOCAL_MESSAGE(troupe::actors::persister::committed)
TROUPE_LOCAL_MESSAGE(troupe::actors::persister::looked)

namespace troupe::actors::persister {

namespace {

using drained = messages::msg<messages::Drained>;

struct state {
  sup::context ctx;
  persister_core core;
  std::shared_ptr<ckpt::checkpoint_host> host;
  node_addresses node;
  std::uint64_t questions = 0;
  std::map<std::uint64_t, sup::promise<drained>> open_questions;
  sup::alarm alarm;
};

using private_handle =
    sup::widened<handle, persist_requested, written, committed, looked, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const persister_core::write& e) const {
    self->state->host->write(
        e.snapshot, [me = private_handle{self}, snapshot = e.snapshot](result<ports::receipt> how) {
          sup::post(me, written{snapshot, std::move(how)});
        });
  }
  void operator()(const persister_core::commit& e) const {
    self->state->host->commit(
        e.order, [me = private_handle{self}, which = e.which](result<ckpt::completed> how) {
          sup::post(me, committed{which, std::move(how)});
        });
  }
  void operator()(const persister_core::retain& e) const { self->state->host->retain(e.order); }
  void operator()(const persister_core::finalize& e) const {
    self->state->host->finalize(e.snapshot, e.how);
  }
  void operator()(const persister_core::look& e) const {
    self->state->host->look(
        [me = private_handle{self}, question = e.question] { sup::post(me, looked{question}); });
  }
  void operator()(const persister_core::drained& e) const {
    auto& open = self->state->open_questions;
    if (const auto found = open.find(e.question); found != open.end()) {
      found->second.deliver(messages::local<messages::Drained>(self->state->ctx.path()));
      open.erase(found);
    }
  }
  void operator()(const persister_core::report& e) const {
    sup::send(self, self->state->node.uplink, e.message);
  }
  void operator()(const persister_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const persister_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void answer_when_drained(self_ptr self, const sup::promise<drained>& promise) {
  auto& s = *self->state;
  if (s.open_questions.size() >= limits::open_questions_max) {
    promise.deliver(sup::fail(errc::overloaded, "too many wait for the images already"));
    return;
  }
  s.open_questions.emplace(++s.questions, promise);
  perform(self, s.core.drain(sup::now(self), s.questions));
}

private_handle::behavior_type behave(self_ptr self, const sup::context& ctx, node_name node,
                                     std::shared_ptr<ckpt::checkpoint_host> host,
                                     node_addresses at) {
  sup::harden(self, ctx);
  self->state.emplace(state{ctx,
                            persister_core(std::move(node), messages::author(ctx.path())),
                            std::move(host),
                            std::move(at),
                            0,
                            {},
                            {}});
  self->state->host->watch([me = private_handle{self}](const ckpt::persist_request& snapshot) {
    sup::post(me, persist_requested{snapshot});
  });
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::CommitStep>& m) {
        perform(self, self->state->core.commit_step(sup::now(self), m));
      },
      [self](const messages::msg<messages::StepFinalized>& m) {
        perform(self, self->state->core.step_finalized(sup::now(self), m));
      },
      [self](const messages::msg<messages::SaveNewest>&) { self->state->host->request_newest(); },
      [self](const messages::msg<messages::MasterLinked>&) {
        perform(self, self->state->core.linked(sup::now(self)));
      },
      [self](const messages::msg<messages::Drain>&) -> sup::answer<drained> {
        auto promise = sup::promise_answer<drained>(self);
        answer_when_drained(self, promise);
        return promise;
      },
      [self](const persist_requested& w) {
        sup::send(self, self->state->node.agent,
                  messages::local<messages::SnapshotWanted>(self->state->ctx.path()));
        perform(self, self->state->core.persist_requested(sup::now(self), w.snapshot));
      },
      [self](const written& w) {
        perform(self, self->state->core.written(sup::now(self), w.snapshot, w.how));
      },
      [self](const committed& c) {
        perform(self, self->state->core.committed(sup::now(self), c.which, c.how));
      },
      [self](looked l) { perform(self, self->state->core.looked(sup::now(self), l.question)); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, node_name node, const std::shared_ptr<ckpt::checkpoint_host>& host,
             const node_addresses& at) {
  return ctx.spawn<handle>(behave, ctx, std::move(node), host, at);
}

} // namespace troupe::actors::persister
