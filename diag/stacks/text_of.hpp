#pragma once

#include "messages/stacks.capnp.h"

#include <string>
#include <string_view>

namespace troupe::diag {

// A text of a message may hold any bytes, also zeros; what Cap'n Proto makes of a std::string, and
// the other way round, ends at the first.
inline std::string_view text_of(capnp::Text::Reader t) {
  return {t.cStr(), t.size()};
}

/// Of a text that outlives what is returned.
inline capnp::Text::Reader to_text(const std::string& text) {
  return {text.c_str(), text.size()};
}

} // namespace troupe::diag
