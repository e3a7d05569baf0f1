#include "runtime/os/kube/machine_marks.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/kube/api_client.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <variant>

namespace troupe::os {

namespace {

constexpr auto component = "kubernetes";

instant now() {
  return std::chrono::steady_clock::now();
}

} // namespace

/// Everything but `post` and `drain` runs on the thread.
class machine_marks::shell {
 public:
  shell(const kube::machine_marks_core::options& options, log::sink log)
      : core_(options), log_(std::move(log)) {}

  ~shell() { stop(); }

  void end() {
    drain();
    stop();
  }

  result<void> open(api_access access) {
    auto client = api_client::open(io_, std::move(access));
    if (!client)
      return tl::make_unexpected(client.error());
    client_ = std::move(*client);
    return {};
  }

  void post(const node_name& node, const std::string& address, const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      ++posted_;
    }
    boost::asio::post(io_.context(), [this, node, address, reason] {
      if (client_)
        perform(core_.mark_faulty(now(), node, address, reason));
      const std::lock_guard lock(mutex_);
      --posted_;
      settle();
    });
  }

 private:
  void stop() {
    call_on(io_, [this] {
      client_.reset();
      timer_.cancel();
      perform(core_.ended());
    });
  }

  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, limits::marks_end_within, [this] { return posted_ == 0 && !is_busy_; });
  }

  /// With the lock.
  void settle() {
    is_busy_ = core_.is_busy();
    idle_.notify_all();
  }

  void perform(const kube::machine_marks_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* note = std::get_if<kube::machine_marks_core::note>(&e))
        log_(component, note->event);
      else
        call(std::get<kube::machine_marks_core::call>(e));
    if (const auto at = core_.next_wakeup()) {
      timer_.expires_at(*at);
      timer_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled)
          go_on(core_.tick(now()));
      });
    }
  }

  void call(const kube::machine_marks_core::call& c) {
    client_->call(c.what, [this, number = c.number](const kube::api_answer& a) {
      go_on(core_.answered(now(), number, a));
    });
  }

  void go_on(const kube::machine_marks_core::effects& effects) {
    perform(effects);
    const std::lock_guard lock(mutex_);
    settle();
  }

  kube::machine_marks_core core_;
  log::sink log_;
  std::mutex mutex_; ///< of what follows
  std::condition_variable idle_;
  int posted_ = 0;
  bool is_busy_ = false;
  io_thread io_{"troupe-kube"};
  boost::asio::steady_timer timer_{io_.context()};
  std::unique_ptr<api_client> client_;
};

result<std::shared_ptr<machine_marks>>
machine_marks::open(api_access access, const kube::machine_marks_core::options& options,
                    log::sink log) {
  auto made = std::make_unique<shell>(options, std::move(log));
  if (const auto opened = made->open(std::move(access)); !opened)
    return tl::make_unexpected(opened.error());
  return std::shared_ptr<machine_marks>(new machine_marks(std::move(made)));
}

machine_marks::machine_marks(std::unique_ptr<shell> s) : shell_(std::move(s)) {}

machine_marks::~machine_marks() = default;

void machine_marks::end() {
  shell_->end();
}

void machine_marks::mark_faulty(const node_name& node, const std::string& address,
                                const std::string& reason) {
  shell_->post(node, address, reason);
}

} // namespace troupe::os
