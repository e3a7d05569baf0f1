#pragma once

#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::ports {

/// Where the master's decisions are kept. One owner at a time; callbacks come from the store's
/// thread, in order of the calls.
class journal_store {
 public:
  virtual ~journal_store() = default;

  /// As which of the job's masters its owner commands: higher each time the journal is opened.
  virtual term opened_as() const = 0;

  /// Whether an earlier master of this run has had it: nodes may know that one, and look for it.
  virtual bool taken_up() const = 0;

  /// Appends a record; answers its index, from 1, once it survives the end of this process.
  virtual void append(messages::any_msg record,
                      std::function<void(result<std::uint64_t>)> done) = 0;

  /// All records, oldest first. A torn last record is not among them.
  virtual void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) = 0;

  /// Of all records those that stay, in their order.
  using selection =
      std::function<std::vector<messages::any_msg>(std::vector<messages::any_msg> records)>;

  /// Drops the records that `keep` does not answer; all of them or none. Called in the order of
  /// appends and reads, from the store's thread. Indexes count on.
  virtual void compact(selection keep, std::function<void(result<void>)> done) = 0;
};

} // namespace troupe::ports
