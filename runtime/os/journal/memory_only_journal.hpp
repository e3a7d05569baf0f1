#pragma once

#include "runtime/ports/journal_store.hpp"

#include <mutex>

namespace troupe::os {

/// A journal without a file, for a job whose user asked for none and whose disk has no room for the
/// one that it would have had. Its records end with the process.
class memory_only_journal final : public ports::journal_store {
 public:
  memory_only_journal();

  term opened_as() const override { return opened_as_; }
  bool taken_up() const override { return false; }
  void append(messages::any_msg record, std::function<void(result<std::uint64_t>)> done) override;
  void read_all(std::function<void(result<std::vector<messages::any_msg>>)> done) override;
  void compact(selection keep, std::function<void(result<void>)> done) override;

 private:
  term opened_as_;
  std::mutex mutex_; ///< callbacks are called under it, so that they come in the order of the calls
  std::vector<messages::any_msg> records_;
  std::uint64_t last_ = 0;
};

} // namespace troupe::os
