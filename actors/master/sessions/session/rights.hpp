#pragma once

#include "messages/conversations.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"

namespace troupe::actors {

/// What a shell must be allowed to do with the job. Its hello says which (`Hello.changesJob`), and
/// the link has compared that with the names in its certificate.
enum class right { look, change };

/// One row for each question of a shell; a question without one does not compile.
template<class Question>
constexpr right right_for() = delete;
template<>
constexpr right right_for<messages::TreeRequest>() {
  return right::look;
}
/// Stops no process for longer than a look takes.
template<>
constexpr right right_for<messages::StacksRequest>() {
  return right::look;
}
template<>
constexpr right right_for<messages::ScaleRequest>() {
  return right::change;
}

/// What none of these kinds is needs none: nothing hears it.
template<class... Questions>
right right_needed(const messages::any_msg& question, messages::kind_list<Questions...>) {
  auto needed = right::look;
  ((needed = question.is<Questions>() ? right_for<Questions>() : needed), ...);
  return needed;
}

} // namespace troupe::actors
