#pragma once

#include "runtime/os/io_thread.hpp"

#include <boost/asio/post.hpp>

#include <future>
#include <utility>

namespace troupe::os {

/// Runs `task` on a thread other than the caller's and waits for its answer.
template<class Task>
auto call_on(io_thread& thread, Task task) {
  std::packaged_task<decltype(task())()> packaged(std::move(task));
  auto answer = packaged.get_future();
  boost::asio::post(thread.context(), std::move(packaged));
  return answer.get();
}

} // namespace troupe::os
