#include "runtime/os/stacks/process_memory.hpp"

#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace troupe::os {

std::size_t process_memory::read_directly(pid_t pid, std::uint64_t address, void* into,
                                          std::size_t bytes) {
  const iovec here{into, bytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
  const iovec there{reinterpret_cast<void*>(address), bytes};
  const auto got = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

const char* process_memory::page_at(std::uint64_t number) {
  const auto known = pages_.find(number);
  if (known != pages_.end())
    return known->second.get();
  if (pages_.size() == limits::stacks_pages_max)
    return nullptr;
  auto page = std::make_unique<char[]>(page_size);
  if (read_directly(pid_, number * page_size, page.get(), page_size) != page_size)
    return nullptr;
  return pages_.emplace(number, std::move(page)).first->second.get();
}

bool process_memory::read(std::uint64_t address, void* into, std::size_t bytes) {
  if (address > UINT64_MAX - bytes)
    return false;
  auto* to = static_cast<char*>(into);
  while (bytes > 0) {
    const auto within = static_cast<std::size_t>(address % page_size);
    const auto part = std::min(bytes, page_size - within);
    const auto* page = page_at(address / page_size);
    if (page == nullptr)
      return false;
    std::memcpy(to, page + within, part);
    address += part;
    to += part;
    bytes -= part;
  }
  return true;
}

std::string process_memory::refusal(std::uint64_t address) {
  char byte = 0;
  const iovec here{&byte, 1};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
  const iovec there{reinterpret_cast<void*>(address), 1};
  if (::process_vm_readv(pid_, &here, 1, &there, 1, 0) >= 0)
    return {};
  switch (errno) {
  case EPERM:
    return permission_words(pid_);
  case ESRCH:
    return fmt::format("process {} has ended", pid_);
  case ENOSYS:
    return "this kernel has no process_vm_readv (CONFIG_CROSS_MEMORY_ATTACH)";
  default:
    return {}; // of this address, not of the process
  }
}

std::string permission_words(pid_t pid) {
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0)
    return fmt::format("process {} has ended", pid);
  const auto yama = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
  if (yama == "2" || yama == "3")
    return fmt::format("process {} may not be read: kernel.yama.ptrace_scope is {}; set it to 1 or "
                       "0, or give CAP_SYS_PTRACE",
                       pid, yama);
  if (owner.st_uid != ::geteuid())
    return fmt::format(
        "process {} may not be read: it is of user {} (or not dumpable), and this is "
        "user {}; run as that user, or give CAP_SYS_PTRACE",
        pid, owner.st_uid, ::geteuid());
  if (yama == "1")
    return fmt::format("process {} may not be read: kernel.yama.ptrace_scope is 1, and it neither "
                       "descends from this one nor allowed it (PR_SET_PTRACER); set it to 0, or "
                       "give CAP_SYS_PTRACE",
                       pid);
  return fmt::format("process {} may not be read: it is not dumpable, has capabilities that this "
                     "one lacks, or a seccomp filter or security module forbids it; give "
                     "CAP_SYS_PTRACE",
                     pid);
}

} // namespace troupe::os
