#include "runtime/sup/scheduler.hpp"

#include <caf/detail/set_thread_name.hpp>
#include <caf/group.hpp>
#include <caf/logger.hpp>
#include <caf/resumable.hpp>

#include <utility>

namespace troupe::sup::detail {

// The book of timers.

template<class Change>
void scheduler::guarded_clock::change(Change change_book) {
  bool wakes = false;
  {
    const std::lock_guard lock(of_.mutex_);
    const auto* const first = schedule().empty() ? nullptr : schedule().begin()->second.get();
    change_book();
    wakes = of_.asleep_ > 0 && !schedule().empty() && schedule().begin()->second.get() != first;
  }
  if (wakes)
    of_.something_to_do_.notify_one();
}

void scheduler::guarded_clock::set_ordinary_timeout(time_point t, caf::abstract_actor* self,
                                                    caf::atom_value type, std::uint64_t id) {
  change([&] { simple_actor_clock::set_ordinary_timeout(t, self, type, id); });
}

void scheduler::guarded_clock::set_multi_timeout(time_point t, caf::abstract_actor* self,
                                                 caf::atom_value type, std::uint64_t id) {
  change([&] { simple_actor_clock::set_multi_timeout(t, self, type, id); });
}

void scheduler::guarded_clock::set_request_timeout(time_point t, caf::abstract_actor* self,
                                                   caf::message_id id) {
  change([&] { simple_actor_clock::set_request_timeout(t, self, id); });
}

// What is cancelled holds its actor. The actor itself cancels, so this is never the last hold on
// it, and no actor's end begins under the mutex.

void scheduler::guarded_clock::cancel_ordinary_timeout(caf::abstract_actor* self,
                                                       caf::atom_value type) {
  const std::lock_guard lock(of_.mutex_);
  simple_actor_clock::cancel_ordinary_timeout(self, type);
}

void scheduler::guarded_clock::cancel_request_timeout(caf::abstract_actor* self,
                                                      caf::message_id id) {
  const std::lock_guard lock(of_.mutex_);
  simple_actor_clock::cancel_request_timeout(self, id);
}

void scheduler::guarded_clock::cancel_timeouts(caf::abstract_actor* self) {
  const std::lock_guard lock(of_.mutex_);
  simple_actor_clock::cancel_timeouts(self);
}

void scheduler::guarded_clock::schedule_message(time_point t, caf::strong_actor_ptr receiver,
                                                caf::mailbox_element_ptr content) {
  change([&] { simple_actor_clock::schedule_message(t, std::move(receiver), std::move(content)); });
}

void scheduler::guarded_clock::schedule_message(time_point t, caf::group target,
                                                caf::strong_actor_ptr sender,
                                                caf::message content) {
  change([&] {
    simple_actor_clock::schedule_message(t, std::move(target), std::move(sender),
                                         std::move(content));
  });
}

void scheduler::guarded_clock::cancel_all() {
  schedule_map dropped; // outlives the lock: what it holds may end with it
  const std::lock_guard lock(of_.mutex_);
  actor_lookup_.clear();
  dropped.swap(schedule_);
}

scheduler::event_ptr scheduler::guarded_clock::take_due() {
  if (schedule_.empty() || schedule_.begin()->first > now())
    return nullptr;
  auto due = std::move(schedule_.begin()->second);
  if (due->backlink != actor_lookup_.end())
    actor_lookup_.erase(due->backlink);
  schedule_.erase(schedule_.begin());
  return due;
}

// The threads.

scheduler::scheduler(caf::actor_system& system) : abstract_coordinator(system) {}

caf::actor_system::module* scheduler::make(caf::actor_system& system, caf::detail::type_list<>) {
  return new scheduler(system);
}

void scheduler::enqueue(caf::resumable* job) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    wakes = asleep_ > 0;
  }
  if (wakes)
    something_to_do_.notify_one();
}

caf::actor_clock& scheduler::clock() noexcept {
  return clock_;
}

void scheduler::start() {
  for (std::size_t i = 0; i < num_workers(); ++i) {
    threads_.emplace_back([this] {
      caf::logger::set_current_actor_system(&system());
      caf::detail::set_thread_name("troupe-actors");
      run();
    });
  }
}

void scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  something_to_do_.notify_all();
  for (auto& thread : threads_)
    thread.join();
  threads_.clear();
  clock_.cancel_all();
  // Actors that still had something to do end unheard; their ends may give others something to do.
  while (auto* const job = take_job())
    cleanup_and_release(job);
}

caf::resumable* scheduler::take_job() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() ? nullptr : pop_job();
}

caf::resumable* scheduler::pop_job() {
  auto* const job = jobs_.front();
  jobs_.pop_front();
  return job;
}

void scheduler::run() {
  unit here(*this);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (auto due = clock_.take_due()) {
      lock.unlock();
      clock_.ring(*due);
      due.reset(); // what it holds may end with it, which needs the mutex
      lock.lock();
    } else if (!jobs_.empty()) {
      auto* const job = pop_job();
      lock.unlock();
      resume(here, job);
      lock.lock();
    } else {
      sleep(lock);
    }
  }
}

void scheduler::sleep(std::unique_lock<std::mutex>& lock) {
  ++asleep_;
  const auto& timers = clock_.schedule();
  if (timers.empty())
    something_to_do_.wait(lock);
  else // a copy of the time: the timer may be cancelled meanwhile
    something_to_do_.wait_until(lock, caf::actor_clock::time_point(timers.begin()->first));
  --asleep_;
}

void scheduler::resume(unit& on, caf::resumable* job) {
  switch (job->resume(&on, max_throughput())) {
  case caf::resumable::resume_later: // and keep what holds it
    enqueue(job);
    break;
  case caf::resumable::done:
  case caf::resumable::awaiting_message:
  case caf::resumable::shutdown_execution_unit:
    caf::intrusive_ptr_release(job);
    break;
  }
}

} // namespace troupe::sup::detail
