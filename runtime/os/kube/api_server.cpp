#include "runtime/os/kube/api_server.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/kube/api_client.hpp"
#include "runtime/os/kube/api_exchange.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/post.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <utility>

namespace troupe::os {

/// Everything but `post` runs on the thread.
class api_server::shell {
 public:
  shell() = default;
  shell(const shell&) = delete;
  shell& operator=(const shell&) = delete;
  ~shell() {
    call_on(io_, [this] {
      waiting_.clear();
      for (const auto& [id, w] : watches_)
        w->forget();
      watches_.clear();
      client_.reset();
    });
  }

  result<void> open(api_access access) {
    auto client = api_client::open(io_, std::move(access));
    if (!client)
      return tl::make_unexpected(client.error());
    client_ = std::move(*client);
    return {};
  }

  template<class Task>
  void post(Task task) {
    boost::asio::post(io_.context(), std::move(task));
  }

  void call(kube::api_request what, on_answer answered) {
    if (waiting_.size() >= limits::api_calls_waiting_max)
      return answered({0, "too many calls to the API server wait", {}});
    waiting_.emplace_back(std::move(what), std::move(answered));
    begin_waiting();
  }

  std::uint64_t next_watch() { return ++last_watch_; }

  void watch(std::uint64_t id, const kube::api_request& what, on_line line, on_answer ended) {
    watches_[id] =
        client_->watch(what, std::move(line), [this, id, ended = std::move(ended)](const auto& a) {
          post([this, id] { watches_.erase(id); });
          ended(a);
        });
  }

  void cut(std::uint64_t id) {
    if (const auto found = watches_.find(id); found != watches_.end()) {
      found->second->forget();
      watches_.erase(found);
    }
  }

 private:
  void begin_waiting() {
    while (under_way_ < limits::api_calls_at_once && !waiting_.empty()) {
      auto [what, answered] = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_;
      client_->call(what, [this, answered = std::move(answered)](const auto& a) {
        --under_way_;
        answered(a);
        post([this] { begin_waiting(); });
      });
    }
  }

  std::atomic<std::uint64_t> last_watch_{0};
  std::deque<std::pair<kube::api_request, on_answer>> waiting_;
  std::size_t under_way_ = 0;
  std::map<std::uint64_t, std::shared_ptr<api_exchange>> watches_;
  io_thread io_{"troupe-kube"};
  std::unique_ptr<api_client> client_;
};

result<std::shared_ptr<api_server>> api_server::open(api_access access) {
  auto made = std::make_unique<shell>();
  if (const auto opened = made->open(std::move(access)); !opened)
    return tl::make_unexpected(opened.error());
  return std::shared_ptr<api_server>(new api_server(std::move(made)));
}

api_server::api_server(std::unique_ptr<shell> s) : shell_(std::move(s)) {}

api_server::~api_server() = default;

void api_server::call(kube::api_request what, on_answer answered) {
  shell_->post(
      [s = shell_.get(), what = std::move(what), answered = std::move(answered)]() mutable {
        s->call(std::move(what), std::move(answered));
      });
}

std::uint64_t api_server::watch(kube::api_request what, on_line line, on_answer ended) {
  const auto id = shell_->next_watch();
  shell_->post([s = shell_.get(), id, what = std::move(what), line = std::move(line),
                ended = std::move(ended)]() mutable {
    s->watch(id, what, std::move(line), std::move(ended));
  });
  return id;
}

void api_server::cut(std::uint64_t watch) {
  shell_->post([s = shell_.get(), watch] { s->cut(watch); });
}

} // namespace troupe::os
