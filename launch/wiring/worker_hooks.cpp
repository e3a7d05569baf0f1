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

result<std::string> trace_library() {
  std::error_code error;
  const auto library = std::filesystem::path(own_program()).parent_path().parent_path() /
                       "libexec/troupe/libtroupe_trace.so";
  if (!std::filesystem::exists(library, error))
    return failure(errc::unavailable,
                   "--trace: " + library.string() + " is not there; it belongs to the program");
  return library.string();
}

} // namespace troupe::launch
