#pragma once

#include <stdexcept>
#include <string>

namespace troupe {

/// Our own code is wrong. Ends the actor that meets it; the supervisor decides what follows.
class invariant_broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// States what must hold. Kept on in every build.
inline void invariant(bool holds, const char* what) {
  if (!holds)
    throw invariant_broken(what);
}

inline void invariant(bool holds, const std::string& what) {
  invariant(holds, what.c_str());
}

} // namespace troupe
