#pragma once

#include <caf/detail/simple_actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::sup::detail {

/// Runs an engine's actors, and rings their timers, on the same few threads:
///
///     jobs ──▶ queue    ──▶ ┐
///                           ├─▶ each thread: a timer that is due, else the oldest job, else sleep
///     timers ▶ schedule ──▶ ┘
///
/// CAF's own coordinator keeps its timers on a thread of their own. Every question with a deadline
/// then wakes that thread twice, once to note the deadline and once to drop it, and an actor that
/// answers in microseconds pays for four context switches. Here the thread that asks notes the
/// deadline itself and looks at the schedule before it next sleeps: no other thread is woken.
///
/// Invariant: a thread sleeps only while no job waits, and at most until the first timer is due.
class scheduler final : public caf::scheduler::abstract_coordinator {
 public:
  explicit scheduler(caf::actor_system& system);

  /// For actor_system_config::load.
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);

  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override;

 protected:
  /// Without CAF's printer, which would have a thread: our actors print nothing.
  void start() override;
  void stop() override;

 private:
  using event_ptr = caf::detail::simple_actor_clock::unique_delayed_event_ptr;

  /// CAF's book of timers; the scheduler's mutex guards it. CAF rings under that guard by itself
  /// (`trigger_expired_timeouts`), which we do not use: a message may end an actor, whose end
  /// cancels its timers.
  class guarded_clock final : public caf::detail::simple_actor_clock {
   public:
    explicit guarded_clock(scheduler& of) : of_(of) {}

    void set_ordinary_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type,
                              std::uint64_t id) override;
    void set_multi_timeout(time_point t, caf::abstract_actor* self, caf::atom_value type,
                           std::uint64_t id) override;
    void set_request_timeout(time_point t, caf::abstract_actor* self, caf::message_id id) override;
    void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
    void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
    void cancel_timeouts(caf::abstract_actor* self) override;
    void schedule_message(time_point t, caf::strong_actor_ptr receiver,
                          caf::mailbox_element_ptr content) override;
    void schedule_message(time_point t, caf::group target, caf::strong_actor_ptr sender,
                          caf::message content) override;
    void cancel_all() override;

    /// The first timer that is due, taken out; null if none is. Hold the mutex.
    event_ptr take_due();
    /// Sends what a timer carries. Do not hold the mutex.
    void ring(delayed_event& due) { ship(due); }

   private:
    /// Changes the book; wakes a thread that would sleep beyond a timer that is now the first.
    template<class Change>
    void change(Change change_book);

    scheduler& of_;
  };

  class unit final : public caf::execution_unit {
   public:
    explicit unit(scheduler& of) : execution_unit(&of.system()), of_(of) {}
    void exec_later(caf::resumable* job) override { of_.enqueue(job); }

   private:
    scheduler& of_;
  };

  void run();
  /// The oldest job. Hold the mutex, and know that there is one.
  caf::resumable* pop_job();
  caf::resumable* take_job();
  void sleep(std::unique_lock<std::mutex>& lock);
  void resume(unit& on, caf::resumable* job);

  std::mutex mutex_; ///< Guards all below but threads_.
  std::condition_variable something_to_do_;
  std::deque<caf::resumable*> jobs_;
  guarded_clock clock_{*this};
  std::size_t asleep_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace troupe::sup::detail
