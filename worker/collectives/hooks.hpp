#pragma once

#include <cstdint>
#include <string>

/// PyTorch's process groups report what they do, without a change in the script.
///
/// PyTorch calls a process group's methods through its virtual table, from Python and from its own
/// threads (DDP's reducer). That table's words are made to point to trampolines, as are the words
/// through which the library calls a few functions of its own:
///
///     allreduce, …            this thread is about to make a work of that kind
///     enqueue(work)           … and has made it: entered
///     runLoop()               this thread does the works of that group
///     finishWorkGloo[Error]() … and has done one: left
///     setSequenceNumberForGroup(), getSequenceNumberForGroup()
///                             while a name is said (name_next): that is its name
///
/// Methods are known by their names alone, so that other versions' signatures do not matter. Where
/// one of these functions is missing, nothing is hooked.
namespace troupe::worker {

struct hooked {
  std::uint64_t feeds = 0; ///< bits of diag::feed
  std::string why;         ///< a line for each library that could not be hooked
};

/// Once in a process; a second call says what the first did.
hooked hook_process_groups();

/// Process groups whose sequence number this thread sets or asks for have this name.
void name_next(const char* name, std::uint64_t members, std::uint64_t members_hash);
void named();

} // namespace troupe::worker
