#pragma once

#include "runtime/base/time.hpp"

#include <optional>
#include <string>

/// Requests to the API of Kubernetes and their answers, as values.
/// https://kubernetes.io/docs/reference/using-api/api-concepts/
namespace troupe::kube {

struct api_request {
  std::string method;       ///< GET, POST, PUT, PATCH
  std::string target;       ///< path and query, escaped
  std::string content_type; ///< of the body; empty: there is none
  std::string body;
};

struct api_answer {
  unsigned status = 0;                 ///< of HTTP; 0: none came
  std::string body;                    ///< with status 0: why none came, in words
  std::optional<duration> retry_after; ///< Retry-After, in whole seconds
  bool is_too_large = false;           ///< with status 0: it was not read to its end
};

/// Worth another attempt later: no answer, too many requests, or a server that is not well.
bool is_passing(const api_answer& a);

/// In words, for people: the message of the `Status` object that the server sends with an error, or
/// what there is instead. Bounded, one line.
std::string in_words(const api_answer& a);

/// For the value of a query: "a b" is "a%20b".
std::string escaped(const std::string& text);

} // namespace troupe::kube
