#include "trace/process/cuda_driver.hpp"

#include <dlfcn.h>

#include <pthread.h>

namespace troupe::trace {

namespace {

pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

template<class Function>
bool find(void* library, const char* name, Function& into) {
  into = reinterpret_cast<Function>(dlsym(library, name));
  return into != nullptr;
}

} // namespace

bool cuda_driver::ready() {
  if (ready_.load(std::memory_order_acquire))
    return true;
  // The search takes the loader's lock; a program without libcuda is asked ever more rarely.
  const auto asked = asked_.fetch_add(1, std::memory_order_relaxed);
  if ((asked & (asked + 1)) != 0)
    return false;
  return load();
}

bool cuda_driver::load() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) {
    dlerror();
    return false;
  }
  // It stays open: the process has it anyway, and functions of it are in use from now on.
  pthread_mutex_lock(&loading);
  const auto complete =
      ready_.load() ||
      (find(library, "cuCtxGetCurrent", get_current_) &&
       find(library, "cuCtxSetCurrent", set_current_) && find(library, "cuEventCreate", create_) &&
       find(library, "cuEventDestroy_v2", destroy_) && find(library, "cuEventRecord", record_) &&
       find(library, "cuEventQuery", query_) && find(library, "cuEventElapsedTime", elapsed_) &&
       find(library, "cuStreamIsCapturing", is_capturing_) &&
       find(library, "cuThreadExchangeStreamCaptureMode", exchange_mode_));
  if (complete)
    ready_.store(true, std::memory_order_release);
  pthread_mutex_unlock(&loading);
  if (!complete)
    dlerror();
  return complete;
}

abi::driver_context cuda_driver::current() const {
  abi::driver_context context = nullptr;
  return get_current_(&context) == abi::driver_success ? context : nullptr;
}

void cuda_driver::exempt_this_thread_from_captures() const {
  int mode = abi::capture_mode_relaxed;
  exchange_mode_(&mode);
}

} // namespace troupe::trace
