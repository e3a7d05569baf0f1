#include "runtime/os/journal/memory_only_journal.hpp"

#include <chrono>
#include <utility>

namespace troupe::os {

/// The wall clock's milliseconds, as for a journal in a file: a successor is newer.
memory_only_journal::memory_only_journal()
    : opened_as_{static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count())} {}

void memory_only_journal::append(messages::any_msg record,
                                 std::function<void(result<std::uint64_t>)> done) {
  const std::lock_guard lock(mutex_);
  records_.push_back(std::move(record));
  done(++last_);
}

void memory_only_journal::read_all(
    std::function<void(result<std::vector<messages::any_msg>>)> done) {
  const std::lock_guard lock(mutex_);
  done(records_);
}

void memory_only_journal::compact(selection keep, std::function<void(result<void>)> done) {
  const std::lock_guard lock(mutex_);
  records_ = keep(std::move(records_));
  done({});
}

} // namespace troupe::os
