#include "tests/sim/fiber.hpp"

#include "runtime/base/invariant.hpp"

#include <utility>

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
  if (spare_stacks().size() < stacks_kept)
    spare_stacks().push_back(std::move(stack_));
}

fiber* fiber::current() {
  return running;
}

void fiber::enter() {
  auto* const me = running;
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
  swapcontext(&caller_, &own_);
}

void fiber::suspend() {
  running = called_by_;
  swapcontext(&own_, &caller_);
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
