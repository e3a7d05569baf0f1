#pragma once

#include <string>
#include <vector>

namespace troupe::os {

/// A shared library that is used if it is there. It stays loaded for as long as the process lives:
/// not every driver survives being left.
class loaded_library {
 public:
  loaded_library() = default;
  /// The first of these that can be loaded: names that the system looks for, or paths.
  explicit loaded_library(const std::vector<std::string>& names);

  explicit operator bool() const { return handle_ != nullptr; }

  /// Null if it has no such function.
  template<class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* name) const;

  void* handle_ = nullptr;
};

/// Where a library of NVIDIA's for Python may be ("cublas/lib/libcublas.so.12"): in the environment
/// that `own_program` is installed in, in the active one, and in CUDA's own place. The system's
/// search finds only what is in LD_LIBRARY_PATH or configured.
std::vector<std::string> nvidia_libraries(const std::string& own_program, const std::string& folder,
                                          const std::string& file);

} // namespace troupe::os
