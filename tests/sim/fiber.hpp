#pragma once

#include "runtime/base/time.hpp"

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::sim {

/// A thread of a simulated process that runs the product's blocking code: on a stack of its own,
/// until it waits. So what other threads, processes and nodes do between any two of its storage
/// operations is the seed's decision.
class fiber : public std::enable_shared_from_this<fiber> {
 public:
  /// Thrown through whatever waits when its process ends.
  struct process_ended {};
  /// Lets something happen later, in the process that the fiber belongs to.
  using timer = std::function<void(duration, std::function<void()>)>;

  /// Runs it until it waits or returns.
  static std::shared_ptr<fiber> start(timer later, std::function<void()> what);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Of the code that runs now; null if that is on no fiber.
  static fiber* current();
  /// Precondition: current() is this. Time passes; throws process_ended if `end` is called
  /// meanwhile.
  void pass(duration d);
  /// Its process ends: unwinds it. Not from inside it.
  void end();
  bool done() const { return done_; }

 private:
  fiber(timer later, std::function<void()> what);
  static void enter();
  void resume();
  void suspend();

  timer later_;
  std::function<void()> what_;
  std::vector<char> stack_;
  ucontext_t own_{}, caller_{};
  /// What the address sanitizer wants to know of both stacks; unused without it.
  void* own_frames_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  fiber* called_by_ = nullptr;
  bool done_ = false, ended_ = false;
};

} // namespace troupe::sim
