#pragma once

#include "runtime/os/stacks/memory_port.hpp"

#include <map>
#include <memory>
#include <string>

#include <sys/types.h>

namespace troupe::os {

/// The memory of another process, read while that runs (process_vm_readv): neither stopped nor
/// asked. Whole pages are read and kept until `refresh`, since what leads to one frame lies close
/// together; so it is read once and is from nearly one moment.
class process_memory final : public memory_port {
 public:
  explicit process_memory(pid_t pid) : pid_(pid) {}

  bool read(std::uint64_t address, void* into, std::size_t bytes) override;
  void refresh() override { pages_.clear(); }

  /// Why this process may not read it, in one line with what to do; empty if it may.
  std::string refusal(std::uint64_t address);

  /// Without the pages that are kept; answers how many bytes were read from the beginning on.
  static std::size_t read_directly(pid_t pid, std::uint64_t address, void* into, std::size_t bytes);

 private:
  static constexpr std::size_t page_size = 4'096;
  const char* page_at(std::uint64_t number);

  pid_t pid_;
  std::map<std::uint64_t, std::unique_ptr<char[]>> pages_;
};

/// In one line: that the system does not let this process read the other, and what lets it.
std::string permission_words(pid_t pid);

} // namespace troupe::os
