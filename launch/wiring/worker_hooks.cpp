#include "launch/wiring/worker_hooks.hpp"

#include <filesystem>
#include <system_error>

namespace troupe::launch {

std::string own_program() {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/self/exe", gone).string();
}

std::string worker_hooks() {
  std::error_code error;
  const auto hooks =
      std::filesystem::path(own_program()).parent_path().parent_path() / "libexec/troupe/hooks";
  const bool there = std::filesystem::exists(hooks / "sitecustomize.py", error);
  return there ? hooks.string() : std::string();
}

} // namespace troupe::launch
