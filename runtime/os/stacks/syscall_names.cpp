#include "runtime/os/stacks/syscall_names.hpp"

#include <fmt/format.h>
#include <seccomp.h>

#include <cstdlib>
#include <memory>

namespace troupe::os {

std::string syscall_name(long number) {
  const auto release = [](char* text) { std::free(text); };
  const std::unique_ptr<char, decltype(release)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number)), release);
  return name ? std::string(name.get()) : fmt::format("system call {}", number);
}

} // namespace troupe::os
