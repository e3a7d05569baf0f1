#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The file that holds the stacks of one rank: ProcessStacks messages, one behind the other, of the
/// training process and of its children. A message says how long it is, so a file that was cut off
/// gives what came before.
namespace troupe::diag {

/// Of which rank a file is, by its name.
struct dump_name {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
};

/// "rank-00003-of-00008.stacks"
std::string dump_file_name(const dump_name& of);
std::optional<dump_name> dump_named(std::string_view file);

/// What is written into the file.
std::string dump_of(const std::vector<process_stacks>& processes);

/// The processes in it, up to the first that cannot be read.
std::vector<process_stacks> read_dump(std::string_view bytes);

/// Merges what can be read of it. An error says what is wrong with the rest, and at which process
/// it begins.
result<void> add_dump(merged_stacks& into, std::string_view bytes, const dump_name& of);

} // namespace troupe::diag
