#include "actors/master/journal/journal.hpp"

#include "actors/master/journal/compaction.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace troupe::actors::journal {

/// The store has answered an append; `ticket` says which.
struct appended {
  std::uint64_t ticket = 0;
  result<std::uint64_t> outcome;
};
struct loaded {
  std::uint64_t ticket = 0;
  result<std::vector<messages::any_msg>> outcome;
};
struct shortened {
  result<void> outcome;
};

} // namespace troupe::actors::journal

TROUPE_LOCAL_MESSAGE(troupe::actors::journal::appended)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::loaded)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::shortened)

namespace troupe::actors::journal {

namespace {

using recorded = messages::msg<messages::Recorded>;

struct state {
  sup::context ctx;
  journal_core core;
  std::shared_ptr<ports::journal_store> store;
  std::uint64_t tickets = 0;
  std::map<std::uint64_t, sup::promise<recorded>> appends;
  std::map<std::uint64_t, sup::promise<history>> reads;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, appended, loaded, shortened, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

/// Removes and returns the promise of a ticket.
template<class Promise>
Promise take(std::map<std::uint64_t, Promise>& open, std::uint64_t ticket) {
  auto found = open.find(ticket);
  invariant(found != open.end(), "the journal store answered twice");
  auto promise = std::move(found->second);
  open.erase(found);
  return promise;
}

struct performer {
  self_ptr self;

  void operator()(const journal_core::write& e) const {
    self->state->store->append(e.record,
                               [me = private_handle{self}, ticket = e.which](auto outcome) {
                                 sup::post(me, appended{ticket, std::move(outcome)});
                               });
  }
  void operator()(const journal_core::acknowledge& e) const {
    take(self->state->appends, e.which)
        .deliver(messages::local<messages::Recorded>(self->state->ctx.path(),
                                                     [&e](auto b) { b.setIndex(e.index); }));
  }
  void operator()(const journal_core::refuse& e) const {
    take(self->state->appends, e.which).deliver(sup::fail(e.why));
  }
  void operator()(const journal_core::compact&) const {
    self->state->store->compact([](const auto& records) { return compacted(records); },
                                [me = private_handle{self}](result<void> outcome) {
                                  sup::post(me, shortened{std::move(outcome)});
                                });
  }
  void operator()(const journal_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void perform(self_ptr self, const journal_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

void deliver(self_ptr self, const loaded& l) {
  auto promise = take(self->state->reads, l.ticket);
  if (!l.outcome)
    return promise.deliver(sup::fail(l.outcome.error()));
  history all{*l.outcome};
  for (const auto& record : self->state->core.unwritten())
    all.records.push_back(record);
  promise.deliver(std::move(all));
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, journal_options options,
                                     std::shared_ptr<ports::journal_store> store) {
  sup::harden(self, ctx);
  self->state.emplace(
      state{ctx, journal_core(std::move(options)), std::move(store), 0, {}, {}, {}});
  perform(self, self->state->core.begin());
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::any_msg& record) -> sup::answer<recorded> {
        auto& s = *self->state;
        auto promise = sup::promise_answer<recorded>(self);
        const auto ticket = ++s.tickets;
        s.appends.emplace(ticket, promise);
        perform(self, s.core.append(ticket, record));
        return promise;
      },
      [self](const messages::msg<messages::ReadBack>&) -> sup::answer<history> {
        auto& s = *self->state;
        auto promise = sup::promise_answer<history>(self);
        perform(self, s.core.withdraw());
        const auto ticket = ++s.tickets;
        s.reads.emplace(ticket, promise);
        s.store->read_all([me = private_handle{self}, ticket](auto r) {
          sup::post(me, loaded{ticket, std::move(r)});
        });
        return promise;
      },
      [self](const appended& a) {
        perform(self, self->state->core.written(sup::now(self), a.ticket, a.outcome));
      },
      [self](const loaded& l) { deliver(self, l); },
      [self](const shortened& s) { perform(self, self->state->core.compacted(s.outcome)); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, journal_options options,
             std::shared_ptr<ports::journal_store> store) {
  return ctx.spawn<handle>(behave, ctx, std::move(options), std::move(store));
}

} // namespace troupe::actors::journal
