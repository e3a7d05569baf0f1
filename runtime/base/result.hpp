#pragma once

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// What the caller should do about a failure. A code exists only if some caller acts on it.
enum class errc {
  invalid,     ///< The input is wrong and will be wrong again: tell its author.
  absent,      ///< What was asked for is not there.
  refused,     ///< The other side, or the system, said no: give up this way.
  unavailable, ///< Not reachable now: try again later, with back-off.
  overloaded,  ///< A bound was reached: shed or slow down.
  closed,      ///< The link or process behind the call is gone.
};

const char* to_string(errc code);

/// An expected failure, as a value. `what` is one line that names the thing and, for users, what to
/// do.
struct error {
  errc code = errc::invalid;
  std::string what;
};

template<class T>
using result = tl::expected<T, error>;

inline tl::unexpected<error> failure(errc code, std::string what) {
  return tl::make_unexpected(error{code, std::move(what)});
}

} // namespace troupe
