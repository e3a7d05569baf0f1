#include "runtime/os/bulk/bulk_exchange.hpp"

#include "runtime/base/rate_limiter.hpp"
#include "runtime/link/bulk_peers.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::os {

namespace {

const char* const exchange_name = "bulk_exchange";

/// The same link, which counts until its last owner lets go of it.
ports::connection_ptr counted(ports::connection_ptr link,
                              const std::shared_ptr<std::atomic<std::size_t>>& count) {
  ++*count;
  auto* const that = link.get();
  return {that, [link = std::move(link), count](ports::connection*) mutable {
            link.reset();
            --*count;
          }};
}

} // namespace

/// The acceptors, and which of them takes a peer; the listener's callbacks may outlive the
/// exchange.
class bulk_reception {
 public:
  explicit bulk_reception(const bulk_exchange_options& options) : options_(options) {}

  void serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) {
    const std::lock_guard held(lock_);
    // What the earlier one owns is destroyed behind the lock.
    std::swap(acceptors_[purpose], accept);
  }

  void close() {
    std::map<ports::bulk_purpose, ports::transport::acceptor> gone;
    const std::lock_guard held(lock_);
    gone.swap(acceptors_);
  }

  void meet(ports::peer p) {
    auto hello = p.hello.read();
    const std::lock_guard held(lock_);
    // One that replaces itself is still running.
    const auto accept = acceptor_of(hello->getPurpose());
    const auto why = link::bulk_refusal(
        *hello, {options_.job, static_cast<bool>(accept), peers_->load(), options_.peers_max});
    if (why)
      return link::turn_away(p, exchange_name, *why);
    p.link = counted(std::move(p.link), peers_);
    accept(std::move(p));
  }

 private:
  ports::transport::acceptor acceptor_of(ports::bulk_purpose purpose) const {
    const auto found = acceptors_.find(purpose);
    return found == acceptors_.end() ? nullptr : found->second;
  }

  const bulk_exchange_options options_;
  std::recursive_mutex lock_;
  std::map<ports::bulk_purpose, ports::transport::acceptor> acceptors_;
  const std::shared_ptr<std::atomic<std::size_t>> peers_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

class bulk_exchange::impl {
 public:
  impl(std::shared_ptr<ports::transport> transport, const bulk_exchange_options& options)
      : options_(options), transport_(std::move(transport)), author_(options.node + "/bulk"),
        rate_(options.bytes_per_second, limits::bulk_burst),
        reception_(std::make_shared<bulk_reception>(options)) {}

  ~impl() {
    listener_.reset();
    reception_->close();
  }

  result<void> listen(const ports::endpoint& where) {
    auto opened = transport_->listen(
        where, [reception = reception_](ports::peer p) { reception->meet(std::move(p)); });
    if (!opened)
      return tl::make_unexpected(opened.error());
    listener_ = std::move(*opened);
    return {};
  }

  ports::endpoint where() const { return listener_->where(); }

  void serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) {
    reception_->serve(purpose, std::move(accept));
  }

  void dial(const ports::endpoint& where, ports::bulk_purpose purpose,
            ports::transport::dialled done) {
    transport_->dial(where, hello(purpose), std::move(done));
  }

  instant may_send(instant now, std::uint64_t bytes) const {
    const std::lock_guard held(lock_);
    return rate_.may_send(now, bytes);
  }

  void sent(instant now, std::uint64_t bytes) {
    const std::lock_guard held(lock_);
    rate_.sent(now, bytes);
  }

 private:
  messages::msg<messages::Hello> hello(ports::bulk_purpose purpose) {
    const std::lock_guard held(lock_);
    return link::bulk_hello(author_, options_.job, options_.node, purpose);
  }

  const bulk_exchange_options options_;
  const std::shared_ptr<ports::transport> transport_; // stays as long as its links
  mutable std::mutex lock_;
  messages::author author_; ///< under the lock
  rate_limiter rate_;       ///< under the lock
  const std::shared_ptr<bulk_reception> reception_;
  std::unique_ptr<ports::listener> listener_;
};

result<std::unique_ptr<bulk_exchange>>
bulk_exchange::open(std::shared_ptr<ports::transport> transport, const ports::endpoint& where,
                    const bulk_exchange_options& options) {
  auto made = std::make_unique<impl>(std::move(transport), options);
  if (const auto listening = made->listen(where); !listening)
    return tl::make_unexpected(listening.error());
  return std::unique_ptr<bulk_exchange>(new bulk_exchange(std::move(made)));
}

bulk_exchange::bulk_exchange(std::unique_ptr<impl> own) : impl_(std::move(own)) {}
bulk_exchange::~bulk_exchange() = default;

ports::endpoint bulk_exchange::where() const {
  return impl_->where();
}

void bulk_exchange::serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) {
  impl_->serve(purpose, std::move(accept));
}

void bulk_exchange::dial(const ports::endpoint& where, ports::bulk_purpose purpose,
                         ports::transport::dialled done) {
  impl_->dial(where, purpose, std::move(done));
}

instant bulk_exchange::may_send(instant now, std::uint64_t bytes) const {
  return impl_->may_send(now, bytes);
}

void bulk_exchange::sent(instant now, std::uint64_t bytes) {
  impl_->sent(now, bytes);
}

} // namespace troupe::os
