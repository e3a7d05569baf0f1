#include "actors/master/journal/journal.hpp"

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

} // namespace troupe::actors::journal

TROUPE_LOCAL_MESSAGE(troupe::actors::journal::appended)
TROUPE_LOCAL_MESSAGE(troupe::actors::journal::loaded)

namespace troupe::actors::journal {

namespace {

struct state {
  sup::context ctx;
  std::shared_ptr<ports::journal_store> store;
  std::uint64_t tickets = 0;
  std::map<std::uint64_t, sup::promise<recorded>> appends;
  std::map<std::uint64_t, sup::promise<history>> reads;
};

using private_handle = sup::widened<handle, appended, loaded>;
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

private_handle::behavior_type behave(self_ptr self, sup::context ctx,
                                     std::shared_ptr<ports::journal_store> store) {
  sup::harden(self, ctx);
  self->state.emplace(state{ctx, std::move(store), 0, {}, {}});
  return {
      [self](sup::describe) {
        return fmt::format("{} writes in flight", self->state->appends.size());
      },
      [self](const messages::any_msg& record) -> sup::answer<recorded> {
        auto& s = *self->state;
        auto promise = sup::promise_answer<recorded>(self);
        const auto ticket = ++s.tickets;
        s.appends.emplace(ticket, promise);
        s.store->append(record, [me = private_handle{self}, ticket](result<std::uint64_t> r) {
          sup::post(me, appended{ticket, std::move(r)});
        });
        return promise;
      },
      [self](read_back) -> sup::answer<history> {
        auto& s = *self->state;
        auto promise = sup::promise_answer<history>(self);
        const auto ticket = ++s.tickets;
        s.reads.emplace(ticket, promise);
        s.store->read_all([me = private_handle{self}, ticket](auto r) {
          sup::post(me, loaded{ticket, std::move(r)});
        });
        return promise;
      },
      [self](const appended& a) {
        auto promise = take(self->state->appends, a.ticket);
        if (a.outcome)
          promise.deliver(recorded{*a.outcome});
        else
          promise.deliver(sup::fail(a.outcome.error()));
      },
      [self](const loaded& l) {
        auto promise = take(self->state->reads, l.ticket);
        if (l.outcome)
          promise.deliver(history{*l.outcome});
        else
          promise.deliver(sup::fail(l.outcome.error()));
      },
  };
}

} // namespace

handle start(sup::context& ctx, std::shared_ptr<ports::journal_store> store) {
  return ctx.spawn<handle>(behave, ctx, std::move(store));
}

} // namespace troupe::actors::journal
