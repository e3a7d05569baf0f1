#pragma once

#include <atomic>

namespace troupe::trace {

/// The function that a program would have called if this library were not there.
///
/// The library is put before all others, so CUDA's names lead here, also from libraries that are
/// opened later: a process looks at those that it was started with first. The way on is longer.
/// PyTorch opens its CUDA libraries privately (RTLD_LOCAL), where a search for "the next one" does
/// not see them. So there are three searches, in this order:
///   1. the next one in the order of the process: also another library of this kind;
///   2. what the caller's own library was linked with;
///   3. any library of the process whose file name begins as `library` says.
/// The answer is found once for each function: of two versions of a library in one process, the one
/// that is called first is called for all.
class real_function {
 public:
  /// `library`: such as "libcudart.so".
  constexpr real_function(const char* name, const char* library) : name_(name), library_(library) {}

  /// Null: there is none. `caller` is an address in the code that calls.
  void* find(const void* caller) {
    void* found = found_.load(std::memory_order_acquire);
    return found ? found : search(caller);
  }
  template<class Function>
  Function* as(const void* caller) {
    return reinterpret_cast<Function*>(find(caller));
  }

 private:
  void* search(const void* caller);

  const char* name_;
  const char* library_;
  std::atomic<void*> found_{nullptr};
};

/// The symbol in a loaded library whose file name begins so; null: there is none. Loads nothing.
void* symbol_in_loaded(const char* library, const char* name);

} // namespace troupe::trace
