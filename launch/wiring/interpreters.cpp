#include "launch/wiring/interpreters.hpp"

#include "launch/options/values.hpp"

#include <filesystem>

#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// Empty if it is none. Not resolved: an environment's interpreter is a link, and knows by its own
/// path that it is in one.
std::string runnable(const fs::path& path) {
  std::error_code unknown;
  const bool is = fs::is_regular_file(path, unknown) && ::access(path.c_str(), X_OK) == 0;
  return is ? fs::absolute(path, unknown).lexically_normal().string() : std::string{};
}

std::string python_in(const fs::path& directory) {
  const auto versioned = runnable(directory / "python3");
  return versioned.empty() ? runnable(directory / "python") : versioned;
}

/// Of Python's own environments, and of conda's.
bool is_environment(const fs::path& root) {
  std::error_code unknown;
  return fs::exists(root / "pyvenv.cfg", unknown) || fs::exists(root / "conda-meta", unknown);
}

std::string first_on(const std::string& path, const std::string& name) {
  for (const auto& directory : split(path, ':'))
    if (const auto found = runnable(fs::path(directory.empty() ? "." : directory) / name);
        !found.empty())
      return found;
  return {};
}

} // namespace

pythons_found find_pythons(const std::map<std::string, std::string>& environment,
                           const std::string& program) {
  const auto variable = [&environment](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string{} : at->second;
  };
  const auto path = variable("PATH");
  pythons_found found;
  found.on_path = first_on(path, "python3");
  // As it was called, which may be by a link in an environment to a program elsewhere.
  const auto called = program.find('/') == std::string::npos ? first_on(path, program) : program;
  const auto directory = fs::path(called).parent_path();
  if (!called.empty() && is_environment(directory / ".."))
    found.beside = python_in(directory);
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto root = variable(name); !root.empty() && found.active.empty())
      found.active = python_in(fs::path(root) / "bin");
  return found;
}

} // namespace troupe::launch
