#include "runtime/os/tcpstore/asio_store_host.hpp"

#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/listening.hpp"
#include "runtime/os/tcpstore/store_server.hpp"

#include <utility>

namespace troupe::os {

namespace {

namespace ip = boost::asio::ip;

class served_store final : public ports::open_store {
 public:
  served_store(std::shared_ptr<store_server> server, std::uint16_t port)
      : server_(std::move(server)), port_(port) {}
  ~served_store() override { server_->shut(); }
  std::uint16_t port() const override { return port_; }

 private:
  std::shared_ptr<store_server> server_;
  std::uint16_t port_;
};

/// Where clients that dial `address` arrive. A name is not asked for: that blocks, and it may have
/// more addresses than anybody told us; what arrives on the wrong one is sent away.
std::vector<ip::tcp::endpoint> places(const ports::store_options& o) {
  if (o.reach == ports::store_reach::this_machine) {
    if (o.address == "localhost")
      return {{ip::address_v4::loopback(), o.port}, {ip::address_v6::loopback(), o.port}};
    if (const auto address = numeric(o.address))
      return {{*address, o.port}};
  }
  return *listening_addresses({"*", o.port}, false);
}

} // namespace

result<std::unique_ptr<ports::open_store>>
asio_store_host::open(const ports::store_options& options) {
  const std::lock_guard lock(mutex_);
  if (!thread_)
    thread_.emplace("troupe-store");
  auto open = listen_on(thread_->context(), {options.address, options.port}, places(options));
  if (!open)
    return tl::make_unexpected(open.error());
  const auto port = open->port;
  auto server =
      std::make_shared<store_server>(thread_->context(), options_, options.reach, std::move(*open));
  server->start();
  return std::make_unique<served_store>(std::move(server), port);
}

} // namespace troupe::os
