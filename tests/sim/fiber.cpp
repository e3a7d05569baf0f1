#include "tests/sim/fiber.hpp"

#include "runtime/base/invariant.hpp"

#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_ADDRESS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(TROUPE_ADDRESS_SANITIZER)
#define TROUPE_ADDRESS_SANITIZER
#endif
#ifdef TROUPE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::sim {

namespace {

constexpr std::size_t stack_bytes = 256u << 10;
constexpr std::size_t stacks_kept = 32;

thread_local fiber* running = nullptr;

/// Fresh memory for each would cost more than what runs on it.
std::vector<std::vector<char>>& spare_stacks() {
  thread_local std::vector<std::vector<char>> all;
  return all;
}

std::vector<char> a_stack() {
  auto& spare = spare_stacks();
  if (spare.empty())
    return std::vector<char>(stack_bytes);
  auto one = std::move(spare.back());
  spare.pop_back();
  return one;
}

#ifdef TROUPE_ADDRESS_SANITIZER
/// Right before a switch to that stack; without `frames` this one is left for good.
void will_run_on(const void* stack, std::size_t bytes, void** frames) {
  __sanitizer_start_switch_fiber(frames, stack, bytes);
}
/// Right after a switch to this stack: where the one is that was left.
void runs_again(void* frames, const void** left, std::size_t* left_bytes) {
  __sanitizer_finish_switch_fiber(frames, left, left_bytes);
}
/// What the frames of a fiber that has ended had marked.
void forget_frames(const std::vector<char>& stack) {
  __asan_unpoison_memory_region(stack.data(), stack.size());
}
#else
void will_run_on(const void*, std::size_t, void**) {}
void runs_again(void*, const void**, std::size_t*) {}
void forget_frames(const std::vector<char>&) {}
#endif

} // namespace

std::shared_ptr<fiber> fiber::start(timer later, std::function<void()> what) {
  const std::shared_ptr<fiber> made(new fiber(std::move(later), std::move(what)));
  made->resume();
  return made;
}

fiber::fiber(timer later, std::function<void()> what)
    : later_(std::move(later)), what_(std::move(what)), stack_(a_stack()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.data();
  own_.uc_stack.ss_size = stack_.size();
  own_.uc_link = nullptr;
  makecontext(&own_, &fiber::enter, 0);
}

fiber::~fiber() {
  end();
  forget_frames(stack_);
  if (spare_stacks().size() < stacks_kept)
    spare_stacks().push_back(std::move(stack_));
}

fiber* fiber::current() {
  return running;
}

void fiber::enter() {
  auto* const me = running;
  runs_again(nullptr, &me->caller_stack_, &me->caller_stack_bytes_);
  try {
    me->what_();
  } catch (const process_ended&) {
    // What it did is over, and so is what it held.
  }
  me->what_ = nullptr;
  me->done_ = true;
  me->suspend();
}

void fiber::resume() {
  if (done_)
    return;
  invariant(running != this, "a fiber resumes itself");
  called_by_ = std::exchange(running, this);
  void* callers_frames = nullptr;
  will_run_on(stack_.data(), stack_.size(), &callers_frames);
  swapcontext(&caller_, &own_);
  runs_again(callers_frames, nullptr, nullptr);
}

void fiber::suspend() {
  running = called_by_;
  will_run_on(caller_stack_, caller_stack_bytes_, done_ ? nullptr : &own_frames_);
  swapcontext(&own_, &caller_);
  runs_again(own_frames_, &caller_stack_, &caller_stack_bytes_);
}

void fiber::pass(duration d) {
  invariant(running == this, "a fiber waits that does not run");
  later_(d, [me = weak_from_this()] {
    if (const auto alive = me.lock(); alive && !alive->ended_)
      alive->resume();
  });
  suspend();
  if (ended_)
    throw process_ended{};
}

void fiber::end() {
  if (std::exchange(ended_, true))
    return;
  resume();
}

} // namespace troupe::sim
