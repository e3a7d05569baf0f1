#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"
#include "runtime/sup/report.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

/// The shell's end of a link to a master. The shell's own thread asks and waits; the transport's
/// thread brings what happens.
namespace troupe::launch {

/// What a waiting thread is woken up for. Thread-safe.
class wake_up {
 public:
  void call() {
    const std::lock_guard lock(mutex_);
    ++calls_;
    called_.notify_all();
  }

  /// Returns once `done()` or at the deadline; `done` is asked anew after each call().
  template<class Done>
  bool wait_until(std::chrono::steady_clock::time_point deadline, Done done) {
    while (true) {
      std::unique_lock lock(mutex_);
      const auto seen = calls_;
      lock.unlock();
      if (done())
        return true;
      lock.lock();
      if (!called_.wait_until(lock, deadline, [&] { return calls_ != seen; }))
        return false;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable called_;
  std::uint64_t calls_ = 0;
};

class inquiry {
 public:
  /// What the person may do with the job: a certificate may allow no more than to look.
  enum class purpose { looks, changes };

  /// `stopped`: the person wants no answer any more; it is asked after each call of `wake`.
  inquiry(std::shared_ptr<ports::transport> transport, ports::endpoint master,
          std::shared_ptr<wake_up> wake, std::function<bool()> stopped,
          purpose what = purpose::looks);
  ~inquiry();

  const ports::endpoint& master() const { return master_; }
  const std::shared_ptr<ports::transport>& transport() const { return transport_; }
  /// The master's, as it said when it welcomed this shell; empty before link().
  const std::string& job() const { return job_; }

  /// Dials unless there is a link. `refused` if what listens there is not a master, or does not
  /// want this shell.
  result<void> link();

  /// One question on the link, which is dialled if need be. Of one node, or of all.
  result<sup::node_report> ask_tree(const std::string& node);

  /// What all ranks are doing. The master asks its nodes first, and writes pictures.
  result<messages::msg<messages::StacksReport>> ask_stacks();

  /// Worlds of so many nodes from now on.
  result<messages::msg<messages::ScaleReport>> ask_scale(std::uint32_t nodes_min,
                                                         std::uint32_t nodes_max);

 private:
  struct events;

  /// One question, and its answer.
  template<class Answer, class Question>
  result<messages::msg<Answer>> ask(const messages::msg<Question>& question, duration within);
  bool wait(duration within, const std::function<bool()>& done);
  void drop_link(const std::string& why);

  std::shared_ptr<ports::transport> transport_;
  const ports::endpoint master_;
  std::shared_ptr<wake_up> wake_;
  std::function<bool()> stopped_;
  purpose purpose_;
  messages::author author_{"actor-shell"};
  std::uint64_t questions_ = 0;
  std::shared_ptr<events> events_;
  ports::connection_ptr link_;
  std::string job_;
};

} // namespace troupe::launch
