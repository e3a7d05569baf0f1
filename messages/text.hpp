#pragma once

#include "messages/msg.hpp"

#include <string>

namespace troupe::messages {

/// One line: `Prepared(generation = 3) (node = "n1", storePort = 29401, storeHosted = true)`.
/// Sequence is left out, and the term of a first master, so that transcripts read well; an unknown
/// kind is shown by its number.
std::string to_text(const any_msg& m);

template<class T>
std::string to_text(const msg<T>& m) {
  return to_text(m.any());
}

/// Builds a message of kind `kind_name` from Cap'n Proto's text form of its body, e.g. `(node =
/// "n1")`.
result<any_msg> from_text(const std::string& kind, const std::string& body, const stamp& envelope);

} // namespace troupe::messages
