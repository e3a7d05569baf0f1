#pragma once

#include "runtime/ports/journal_store.hpp"

#include <functional>
#include <memory>

namespace troupe::testing {

/// A place for one journal, and how time passes there.
class journal_world {
 public:
  virtual ~journal_world() = default;

  /// Opens the one journal of this world; it is new at first.
  virtual result<std::unique_ptr<ports::journal_store>> open() = 0;
  /// Lets time pass until `holds`; answers whether it came to that.
  virtual bool until(const std::function<bool()>& holds) = 0;
  /// A second master that opens it takes it from the first, instead of being refused.
  virtual bool newest_takes_it() const { return false; }
};

using journal_world_maker = std::function<std::unique_ptr<journal_world>()>;

/// What every ports::journal_store promises. To be called from one TEST_CASE per store.
void check_journal_contract(const journal_world_maker& make);

/// A record that can be told from others by its number, `padding` bytes longer than need be.
messages::any_msg numbered_record(std::uint64_t number, std::size_t padding = 0);

/// The numbers of such records.
std::vector<std::uint64_t> numbers_of(const std::vector<messages::any_msg>& records);

/// Appends and waits for the answer.
result<std::uint64_t> append(journal_world& world, ports::journal_store& store,
                             messages::any_msg record);

/// Reads everything and waits for it.
result<std::vector<messages::any_msg>> read_all(journal_world& world, ports::journal_store& store);

} // namespace troupe::testing
