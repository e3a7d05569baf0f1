#include "runtime/os/probe/loaded_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace troupe::os {

namespace fs = std::filesystem;

loaded_library::loaded_library(const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (handle_ == nullptr)
      handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

void* loaded_library::find(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

std::vector<std::string> nvidia_libraries(const std::string& own_program, const std::string& folder,
                                          const std::string& file) {
  std::vector<std::string> found{file};
  std::vector<fs::path> environments{fs::path(own_program).parent_path().parent_path()};
  for (const auto* variable : {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME"})
    if (const auto* path = std::getenv(variable); path != nullptr && *path != '\0')
      environments.emplace_back(path);
  environments.emplace_back("/usr/local/cuda");
  std::error_code none;
  for (const auto& environment : environments) {
    found.push_back(environment / "lib" / file);
    found.push_back(environment / "lib64" / file);
    for (const auto& entry : fs::directory_iterator(environment / "lib", none))
      if (entry.path().filename().string().rfind("python", 0) == 0)
        for (const auto& package : {folder, std::string("cu13")})
          found.push_back(entry.path() / "site-packages/nvidia" / package / "lib" / file);
  }
  return found;
}

} // namespace troupe::os
