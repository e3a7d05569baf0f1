#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <thread>

namespace troupe::os {

/// A thread that does I/O: one for the links, their timers and pidfds, and one for the workers'
/// store. Everything that is bound to its context runs on it and must not block. It blocks all
/// signals that can be blocked, so that the main thread gets them; code that starts processes from
/// it must reset their signal mask.
///
/// Outlives everything bound to its context. On destruction handlers that have not run are dropped,
/// not called. An exception that leaves a handler is a bug of ours and ends the process.
class io_thread {
 public:
  /// The name is what the system shows, at most 15 characters.
  explicit io_thread(const char* name = "troupe-io");
  ~io_thread();

  io_thread(const io_thread&) = delete;
  io_thread& operator=(const io_thread&) = delete;

  boost::asio::io_context& context() { return context_; }

  /// Whether the caller is this thread.
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  // One thread runs the context: asio may leave out the locking between several.
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stays_;
  std::thread thread_;
};

} // namespace troupe::os
