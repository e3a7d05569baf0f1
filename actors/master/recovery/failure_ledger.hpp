#pragma once

#include "actors/master/recovery/exit_classes.hpp"
#include "messages/membership.capnp.h"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// What has failed in one generation, root cause first.
///
/// One worker dies of its own fault; the others follow within milliseconds, because a peer is gone.
/// The root cause is the failure that showed first. Each node tells how long ago that was, so that
/// no clocks are compared; what is off by less than limits::order_uncertain may have come in
/// another order, and then a sudden end (by a signal, or before the start) is the cause of what
/// others say in words, and what says that it lost a peer is no cause. A process that its node's
/// own signal ended is never the cause while another one has failed by itself.
class failure_ledger {
 public:
  struct failure {
    node_name node;
    local_rank local = 0;
    global_rank rank = 0;
    std::int32_t pid = 0; ///< 0: of the node itself
    std::int32_t exit_code = 0;
    std::string message;
    /// For people only: clocks of nodes are never compared.
    std::int64_t unix_time_ms = 0;
    bool before_start = false;
    std::string log_file;
    std::string traceback;
    std::string host;
    /// By this master's clock: the time of arrival less the age that the node has told.
    instant shown_at{};
    bool stopped = false; ///< it had shown, but what ended the process was its node's own signal
    std::string log_tail;
    judgement judged; ///< when it was taken
  };

  /// Adds what is not known yet, up to limits::failures_kept. `not_before`: nothing of a generation
  /// fails before it was sealed, whatever a node says.
  void take(instant now, const node_name& node,
            capnp::List<messages::WorkerFailure>::Reader failures,
            std::optional<instant> not_before, const hardware_signs& signs);

  bool empty() const { return failures_.empty(); }
  std::size_t size() const { return failures_.size(); }
  void clear() { failures_.clear(); }
  /// Precondition: not empty.
  const failure& root_cause() const { return failures_.front(); }
  std::string root_cause_in_words() const;
  /// By which two failures of the program are the same, whichever rank has them: the message
  /// without its numbers, but for an exit code that stands alone. Empty: it was killed, or what
  /// failed is the machine.
  static std::string kind_of(exit_class which, const std::string& message);

  /// All of them, for the journal and the verdict; tracebacks up to limits::tracebacks_max. Only
  /// the root cause has the end of its log.
  void write(capnp::List<messages::WorkerFailure>::Builder out) const;

 private:
  void put_root_cause_first();

  std::vector<failure> failures_;
};

} // namespace troupe::actors
