#include "runtime/sup/shell.hpp"

#include <caf/actor_system.hpp>
#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/message_view.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <caf/to_string.hpp>
#include <caf/type_erased_tuple.hpp>
#include <kj/exception.h>

#include <exception>
#include <string>

TROUPE_LOCAL_MESSAGE(troupe::sup::stop_order)

namespace troupe::sup {

namespace {

constexpr auto our_category = caf::atom("troupe");

/// CAF's code 0 means "no error", so ours begin at 1.
constexpr std::uint8_t caf_code(errc code) {
  return static_cast<std::uint8_t>(static_cast<int>(code) + 1);
}

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const kj::Exception& e) {
    return e.getDescription().cStr();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is not an exception";
  }
}

/// A message outside the protocol is a bug of the sender; ending the receiver for it would punish
/// the wrong one.
void tell_unexpected(const context& ctx, const std::string& what) {
  ctx.count_unexpected();
  tell_log(ctx, log::level::error, "message_unexpected",
           "dropped a message outside its protocol: " + what,
           {{"message", what}, {"count", static_cast<std::int64_t>(ctx.unexpected())}});
}

} // namespace

caf::error fail(const error& e) {
  return {caf_code(e.code), our_category, caf::make_message(e.what)};
}

caf::error detail::never_answered() {
  return fail(errc::closed, "the receiver ended, or forgot the question");
}

caf::error fail(errc code, std::string what) {
  return fail(error{code, std::move(what)});
}

error to_error(const caf::error& e) {
  if (e.category() == our_category) {
    std::string what;
    if (e.context().match_elements<std::string>())
      what = e.context().get_as<std::string>(0);
    return {static_cast<errc>(e.code() - 1), std::move(what)};
  }
  if (e == caf::sec::request_timeout)
    return {errc::unavailable, "no answer in time"};
  if (e == caf::sec::request_receiver_down)
    return {errc::closed, "the receiver is down"};
  if (e == caf::sec::invalid_argument)
    return {errc::closed, "no actor is at this address"};
  if (e == caf::sec::unexpected_message)
    return {errc::invalid, "the receiver does not know this question"};
  if (e == caf::exit_reason::kill)
    return {errc::closed, "killed"};
  return {errc::closed, caf::to_string(e)};
}

void harden(caf::scheduled_actor* self, const context& ctx,
            std::function<void(const stop_order&)> on_stop) {
  ctx.begin(caf::actor_cast<caf::strong_actor_ptr>(self));
  self->set_exception_handler([ctx](caf::scheduled_actor*, std::exception_ptr& thrown) {
    const std::string what = text_of(thrown);
    tell_log(ctx, log::level::error, "actor_threw", what, {{"reason", what}});
    return fail(errc::closed, what);
  });
  self->set_default_handler(
      [ctx](caf::scheduled_actor*, caf::message_view& m) -> caf::result<caf::message> {
        tell_unexpected(ctx, m.content().stringify());
        return caf::sec::unexpected_message;
      });
  // Errors and DOWNs reach these handlers only if they answer no request and no watch: outside the
  // protocol as well.
  self->set_error_handler(
      [ctx](caf::scheduled_actor*, caf::error& e) { tell_unexpected(ctx, caf::to_string(e)); });
  self->set_down_handler([ctx](caf::scheduled_actor*, caf::down_msg& m) {
    tell_unexpected(ctx, caf::to_string(m.source));
  });
  self->set_exit_handler(
      [on_stop = std::move(on_stop)](caf::scheduled_actor* actor, caf::exit_msg& m) {
        if (on_stop)
          return on_stop(detail::order_of(m.reason));
        actor->quit(m.reason);
      });
}

description described(caf::scheduled_actor* self, std::string phase) {
  return {std::move(phase), self->mailbox().size()};
}

caf::error detail::ordered(const stop_order& order) {
  const caf::error plain = caf::make_error(caf::exit_reason::user_shutdown);
  return {plain.code(), plain.category(), caf::make_message(order)};
}

stop_order detail::order_of(const caf::error& reason) {
  if (reason.context().match_elements<stop_order>())
    return reason.context().get_as<stop_order>(0);
  return {};
}

bool detail::is_normal_end(const caf::error& why) {
  return !why || why == caf::exit_reason::user_shutdown;
}

void stop(caf::scheduled_actor* self) {
  self->quit();
}

void stop(caf::scheduled_actor* self, const error& why) {
  self->quit(fail(why));
}

instant now(const caf::local_actor* self) {
  return self->system().clock().now();
}

} // namespace troupe::sup
