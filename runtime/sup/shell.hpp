#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/strategy.hpp"

#include <caf/duration.hpp>
#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <functional>
#include <memory>
#include <utility>

/// What an actor's shell says instead of CAF's verbs, so that the shells do not change with CAF's
/// versions.
namespace troupe::sup {

/// `H` with the messages the actor sends to itself. No other actor can send them:
/// `context::spawn<H>` narrows the handle.
template<class H, class... Private>
using widened = typename H::template extend<tell<Private>...>;

/// The `self` argument of a behaviour function: `self->state` is a `State`, destroyed as soon as
/// the actor ends.
template<class H, class State, class... Private>
using self_of = typename widened<H, Private...>::template stateful_pointer<State>;

/// What a behaviour function returns: one handler per message of the protocol, `describe` first.
template<class H, class... Private>
using behavior_of = typename widened<H, Private...>::behavior_type;

namespace detail {
/// What a question fails with whose promise was dropped.
caf::error never_answered();
/// An order to end as the reason of CAF's exit message, and back.
caf::error ordered(const stop_order& order);
stop_order order_of(const caf::error& reason);
/// Ended by itself without an error, or as asked.
bool is_normal_end(const caf::error& why);
} // namespace detail

/// A handler's answer: a value, `fail(…)`, or a promise.
template<class Out>
using answer = caf::result<Out>;

/// An answer to be given later. Copies are the same promise; the first `deliver` counts. Dropped
/// undelivered, by a forgetful actor or by one that ends, it fails the question at once. A handler
/// that returns one states its type: `-> sup::answer<Out>`.
template<class Out>
class promise {
 public:
  promise() = default;
  explicit promise(caf::typed_response_promise<Out> to)
      : slot_(std::make_shared<slot>(std::move(to))) {}

  void deliver(Out out) const {
    if (pending())
      slot_->to.deliver(std::move(out));
  }
  void deliver(caf::error e) const {
    if (pending())
      slot_->to.deliver(std::move(e));
  }
  bool pending() const { return slot_ && slot_->to.pending(); }

  operator answer<Out>() const { return slot_->to; }

 private:
  struct slot {
    explicit slot(caf::typed_response_promise<Out> p) : to(std::move(p)) {}
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;
    ~slot() {
      if (to.pending())
        to.deliver(detail::never_answered());
    }
    caf::typed_response_promise<Out> to;
  };
  std::shared_ptr<slot> slot_;
};

template<class Out, class Self>
promise<Out> promise_answer(Self* self) {
  return promise<Out>(self->template make_response_promise<Out>());
}

/// An error as an answer: `return sup::fail(e);`, `promise.deliver(sup::fail(e))`. The asker's
/// `on_error` receives it unchanged.
caf::error fail(const error& e);
caf::error fail(errc code, std::string what);

/// An error as CAF carries it, in our terms; CAF's own are mapped to what the caller should do.
error to_error(const caf::error& e);

/// First thing in every behaviour function. From here on the actor is found at its address, so that
/// the receiver of its first message finds it when it answers. An exception ends the actor with its
/// text as reason, logged under its path; a message outside its protocol is logged, counted and
/// otherwise ignored; the supervisor's order to end ends it at once, or calls `on_stop`, which must
/// lead to `sup::stop` within the child's stop_within. `on_stop` is called again for each further
/// order.
void harden(caf::scheduled_actor* self, const context& ctx,
            std::function<void(const stop_order&)> on_stop = {});

/// The answer to `describe`: what the actor says of itself, with what only its mailbox knows.
description described(caf::scheduled_actor* self, std::string phase);

/// Ends this actor after the current handler: normally, or as a failure its supervisor acts upon.
void stop(caf::scheduled_actor* self);
void stop(caf::scheduled_actor* self, const error& why);

/// The engine's time.
instant now(const caf::local_actor* self);

/// Sends a message that has no answer. False if no actor is at the address: the message is dropped.
template<class Self, class H, class Msg>
bool send(Self* self, const H& to, Msg m) {
  if (!to)
    return false;
  self->send(to, std::move(m));
  return true;
}

template<class Self, class H, class Msg>
bool send(Self* self, const address<H>& to, Msg m) {
  return send(self, to.current(), std::move(m));
}

/// Asks. Exactly one of `on_answer(answer)` and `on_error(const error&)` is called, from this
/// actor, never from inside this call, unless the actor has ended by then: on_error at once if no
/// actor is at the address or the one there is dead or ends, and after `deadline` in any case.
template<class Self, class H, class Msg, class OnAnswer, class OnError>
void request(Self* self, const H& to, duration deadline, Msg m, OnAnswer on_answer,
             OnError on_error) {
  self->request(to, caf::duration{deadline}, std::move(m))
      .then(std::move(on_answer),
            [on_error = std::move(on_error)](caf::error& e) mutable { on_error(to_error(e)); });
}

template<class Self, class H, class Msg, class OnAnswer, class OnError>
void request(Self* self, const address<H>& to, duration deadline, Msg m, OnAnswer on_answer,
             OnError on_error) {
  request(self, to.current(), deadline, std::move(m), std::move(on_answer), std::move(on_error));
}

/// Sends this actor a private message after `delay`. It cannot be taken back: let it carry a number
/// and compare when it arrives.
template<class Self, class Msg>
void later(Self* self, duration delay, Msg m) {
  self->delayed_send(self, delay, std::move(m));
}

/// Calls `told` once the actor has ended, however it did; at once if it has by now. From whatever
/// thread it ended on, so it should only post.
template<class H>
void when_ended(const H& whom, std::function<void()> told) {
  whom->attach_functor([told = std::move(told)](const caf::error&) { told(); });
}

/// The same, but only for an end that is a failure: not one that was asked for.
template<class H>
void when_failed(const H& whom, std::function<void()> told) {
  whom->attach_functor([told = std::move(told)](const caf::error& why) {
    if (!detail::is_normal_end(why))
      told();
  });
}

/// Sends from outside the actors, e.g. from a port's callback. False if no actor is at the address.
template<class H, class Msg>
bool post(const H& to, Msg m) {
  if (!to)
    return false;
  caf::anon_send(to, std::move(m));
  return true;
}

template<class H, class Msg>
bool post(const address<H>& to, Msg m) {
  return post(to.current(), std::move(m));
}

} // namespace troupe::sup
