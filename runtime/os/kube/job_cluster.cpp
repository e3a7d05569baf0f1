#include "runtime/os/kube/job_cluster.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/kube/api_client.hpp"
#include "runtime/os/kube/api_exchange.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

namespace troupe::os {

namespace {

using kube::job_cluster_core;

constexpr auto component = "kubernetes";

instant now() {
  return std::chrono::steady_clock::now();
}

} // namespace

/// Everything but `post`, `drain` and `end` runs on the thread.
class job_cluster::shell {
 public:
  shell(const job_cluster_core::options& options, log::sink log)
      : replaces(!options.elastic_job.empty()), core_(options), log_(std::move(log)) {}
  shell(const shell&) = delete;
  shell& operator=(const shell&) = delete;
  ~shell() { stop(); }

  result<void> open(api_access access) {
    auto client = api_client::open(io_, std::move(access));
    if (!client)
      return tl::make_unexpected(client.error());
    client_ = std::move(*client);
    post([](job_cluster_core& core, instant at) { return core.start(at); });
    return {};
  }

  void end() {
    post([](job_cluster_core& core, instant at) { return core.end(at); });
    drain();
    stop();
  }

  /// Has the core do something.
  void post(std::function<job_cluster_core::effects(job_cluster_core&, instant)> what) {
    {
      const std::lock_guard lock(mutex_);
      ++posted_;
    }
    boost::asio::post(io_.context(), [this, what = std::move(what)] {
      if (client_)
        perform(what(core_, now()));
      const std::lock_guard lock(mutex_);
      --posted_;
      settle();
    });
  }

  void listen(listener by) {
    boost::asio::post(io_.context(), [this, by = std::move(by)]() mutable {
      by_ = std::move(by);
      for (const auto& [number, wanted] : wishes_)
        by_->scale(wanted);
      if (supply_)
        by_->supplied(*supply_);
    });
  }

  const bool replaces;

 private:
  using place = std::pair<std::size_t, std::uint64_t>;

  void stop() {
    call_on(io_, [this] {
      perform(core_.ended());
      for (const auto& [number, w] : watches_)
        w->forget();
      watches_.clear();
      client_.reset();
      timer_.cancel();
    });
  }

  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, limits::cluster_ends_within, [this] { return posted_ == 0 && !is_busy_; });
  }

  /// With the lock.
  void settle() {
    is_busy_ = core_.is_busy();
    idle_.notify_all();
  }

  void perform(const job_cluster_core::effects& effects) {
    for (const auto& e : effects)
      std::visit([this](const auto& one) { perform(one); }, e);
    if (const auto at = client_ ? core_.next_wakeup() : std::nullopt) {
      timer_.expires_at(*at);
      timer_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled)
          go_on(core_.tick(now()));
      });
    }
  }

  void perform(const job_cluster_core::note& e) { log_(component, e.event); }
  void perform(const job_cluster_core::scale& e) {
    const auto number = ++last_wish_;
    const auto done = [this, number, plan = e.plan](bool accepted, const std::string& why) {
      boost::asio::post(io_.context(), [this, number, plan, accepted, why] {
        if (wishes_.erase(number) > 0 && client_ && !plan.empty())
          go_on(core_.plan_taken(now(), plan, accepted, why));
      });
    };
    const auto& wish = wishes_[number] = {e.nodes.min, e.nodes.max, e.plan, done};
    if (by_)
      by_->scale(wish);
  }
  void perform(const job_cluster_core::supply& e) {
    supply_ = {e.wanted, e.nodes, e.why_no_more, e.budget};
    if (by_)
      by_->supplied(*supply_);
  }
  void perform(const job_cluster_core::call& e) {
    if (!client_)
      return;
    client_->call(e.what, [this, of = e.of, number = e.number](const kube::api_answer& a) {
      go_on(core_.answered(now(), of, number, a));
    });
  }
  void perform(const job_cluster_core::open& e) {
    const place at{e.of, e.number};
    watches_[at] = client_->watch(
        e.what,
        [this, at](const std::string& text) {
          go_on(core_.line(now(), at.first, at.second, text));
        },
        [this, at](const kube::api_answer& a) {
          // Not while it tells its last.
          boost::asio::post(io_.context(), [this, at, a] {
            watches_.erase(at);
            go_on(core_.closed(now(), at.first, at.second, a));
          });
        });
  }
  void perform(const job_cluster_core::cut& e) {
    if (const auto found = watches_.find({e.of, e.number}); found != watches_.end()) {
      const auto w = found->second;
      watches_.erase(found);
      w->forget();
    }
  }

  void go_on(const job_cluster_core::effects& effects) {
    perform(effects);
    const std::lock_guard lock(mutex_);
    settle();
  }

  job_cluster_core core_;
  log::sink log_;
  std::optional<listener> by_;
  std::map<std::uint64_t, ports::cluster::sizes> wishes_; ///< that are not done
  std::uint64_t last_wish_ = 0;
  std::optional<ports::cluster::supply>
      supply_; ///< the newest: a planner that begins anew hears it
  std::map<place, std::shared_ptr<api_exchange>> watches_;
  std::mutex mutex_; ///< of what follows
  std::condition_variable idle_;
  int posted_ = 0;
  bool is_busy_ = false;
  io_thread io_{"troupe-kube"};
  boost::asio::steady_timer timer_{io_.context()};
  std::unique_ptr<api_client> client_;
};

result<std::shared_ptr<job_cluster>>
job_cluster::open(api_access access, const job_cluster_core::options& options, log::sink log) {
  auto made = std::make_unique<shell>(options, std::move(log));
  if (const auto opened = made->open(std::move(access)); !opened)
    return tl::make_unexpected(opened.error());
  return std::shared_ptr<job_cluster>(new job_cluster(std::move(made)));
}

job_cluster::job_cluster(std::unique_ptr<shell> s) : shell_(std::move(s)) {}

job_cluster::~job_cluster() = default;

void job_cluster::listen(listener by) {
  shell_->listen(std::move(by));
}

bool job_cluster::replaces() const {
  return shell_->replaces;
}

void job_cluster::mark_faulty(const node_name& node, const std::string& address,
                              const std::string& reason) {
  shell_->post([node, address, reason](job_cluster_core& core, instant at) {
    return core.mark_faulty(at, node, address, reason);
  });
}

void job_cluster::node_lost(const node_name& node, const std::string& address,
                            const std::string& reason) {
  shell_->post([node, address, reason](job_cluster_core& core, instant at) {
    return core.node_lost(at, node, address, reason);
  });
}

void job_cluster::replace(const node_name&, const std::string& address, bool is_broken,
                          const std::string& reason) {
  shell_->post([address, is_broken, reason](job_cluster_core& core, instant at) {
    return core.replace(at, address, is_broken, reason);
  });
}

void job_cluster::want(std::uint32_t nodes) {
  shell_->post([nodes](job_cluster_core& core, instant at) { return core.want(at, nodes); });
}

void job_cluster::end() {
  shell_->end();
}

} // namespace troupe::os
