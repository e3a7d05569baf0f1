#pragma once

#include <pthread.h>

namespace troupe::trace {

/// std::mutex would need the library of C++, which every process below a worker would load with
/// this one.
class mutex {
 public:
  void lock() { pthread_mutex_lock(&own_); }
  void unlock() { pthread_mutex_unlock(&own_); }

 private:
  pthread_mutex_t own_ = PTHREAD_MUTEX_INITIALIZER;
};

class locked {
 public:
  explicit locked(mutex& m) : mutex_(m) { mutex_.lock(); }
  ~locked() { mutex_.unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  mutex& mutex_;
};

} // namespace troupe::trace
