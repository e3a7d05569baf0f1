#pragma once

#include "kube/api.hpp"

#include <cstdint>
#include <functional>

namespace troupe::kube {

/// The API server as the actors know it. Thread-safe; what is called back is called from a thread
/// of its own, and never from inside a call.
class api_server {
 public:
  virtual ~api_server() = default;

  using on_answer = std::function<void(const api_answer&)>;
  using on_line = std::function<void(std::string)>;

  /// `answered` once, within a bounded time.
  virtual void call(api_request what, on_answer answered) = 0;

  /// A watch: `line` for each line of the answer, without its end, and then `ended` once: with
  /// status 200 and no body if the server has ended it. A number by which it is cut.
  virtual std::uint64_t watch(api_request what, on_line line, on_answer ended) = 0;
  /// Neither of its callbacks is called any more, once those that run have returned.
  virtual void cut(std::uint64_t watch) = 0;
};

} // namespace troupe::kube
