#pragma once

#include "messages/stacks.capnp.h"

#include <string_view>

namespace troupe::diag {

/// A text of a message, which may hold any bytes, also zeros.
inline std::string_view text_of(capnp::Text::Reader t) {
  return {t.cStr(), t.size()};
}

} // namespace troupe::diag
