#pragma once

#include "runtime/os/probe/cuda_driver.hpp"

namespace troupe::os {

/// Memory of the device whose context is current when it is allocated.
class device_memory {
 public:
  explicit device_memory(const cuda_driver& driver) : driver_(driver) {}
  ~device_memory() {
    if (at_ != 0)
      driver_.release(at_);
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  cuda::driver_result allocate(std::size_t bytes) { return driver_.allocate(&at_, bytes); }
  cuda::pointer at() const { return at_; }
  void* address() const { return reinterpret_cast<void*>(at_); } // NOLINT: as libraries take it

 private:
  const cuda_driver& driver_;
  cuda::pointer at_ = 0;
};

} // namespace troupe::os
