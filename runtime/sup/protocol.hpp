#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

namespace troupe::messages {
class any_msg;
template<class T>
class msg;
} // namespace troupe::messages

/// The vocabulary in which an actor's header states its protocol. Cheap to include: no actor is
/// complete after it.
namespace troupe::sup {

class context;
class tree;
template<class H>
class address;

/// Asks an actor what it is doing. Every protocol has it; a supervisor asks when a report is
/// wanted. Answered with `described(self, words)`.
struct describe {};
struct description {
  std::string phase;       ///< In words for people.
  std::size_t mailbox = 0; ///< Messages that wait to be handled.
};

/// A question and its answer: `ask<msg<Prepare>>::yields<msg<Prepared>>`. Sent with `sup::request`.
template<class In>
struct ask {
  template<class Out>
  using yields = typename caf::replies_to<In>::template with<Out>;
};

/// A message without an answer. Sent with `sup::send`.
template<class In>
using tell = caf::reacts_to<In>;

/// The type of a handle to an actor with these messages (and `describe`). A handle of a wider
/// protocol converts to it.
template<class... Sigs>
using protocol =
    caf::typed_actor<typename caf::replies_to<describe>::template with<description>, Sigs...>;

} // namespace troupe::sup

/// Lets a plain struct travel between actors of one process: timers, an actor's messages to itself.
/// At global namespace, in the .cpp that owns the struct. What other actors may send is a schema's
/// message instead.
#define TROUPE_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)

namespace caf {
// Messages never cross the process as CAF messages, so CAF need not know how to serialise them.
template<class T>
struct allowed_unsafe_message_type<troupe::messages::msg<T>> : std::true_type {};
} // namespace caf

TROUPE_LOCAL_MESSAGE(troupe::messages::any_msg)
TROUPE_LOCAL_MESSAGE(troupe::sup::describe)
TROUPE_LOCAL_MESSAGE(troupe::sup::description)
