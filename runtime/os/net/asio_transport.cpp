#include "runtime/os/net/asio_transport.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/asio_dial.hpp"
#include "runtime/os/net/asio_listener.hpp"

namespace troupe::os {

namespace {

class asio_listener final : public ports::listener {
 public:
  asio_listener(io_thread& io, std::shared_ptr<accept_loop> loop, std::string host)
      : io_(io), loop_(std::move(loop)), host_(std::move(host)) {}
  ~asio_listener() override {
    loop_->shut();
    // What else belongs to the port must be free as well for the next listener.
    if (!io_.is_current())
      call_on(io_, [] {});
  }
  ports::endpoint where() const override { return {host_, loop_->port()}; }

 private:
  io_thread& io_;
  std::shared_ptr<accept_loop> loop_;
  std::string host_;
};

} // namespace

asio_transport::asio_transport(io_thread& io, transport_options options,
                               std::shared_ptr<authenticator> auth)
    : io_(io), options_(std::move(options)), authenticator_(std::move(auth)),
      own_(own_addresses(options_.dial_from)) {}

result<std::unique_ptr<asio_transport>> asio_transport::make(io_thread& io,
                                                             transport_options options) {
  if (auto fine = link::validate(options.link); !fine)
    return tl::make_unexpected(fine.error());
  auto auth = make_authenticator(options.proven_by, io.context(), options.log);
  if (!auth)
    return tl::make_unexpected(auth.error());
  return std::unique_ptr<asio_transport>(
      new asio_transport(io, std::move(options), std::move(*auth)));
}

result<std::unique_ptr<ports::listener>> asio_transport::listen(const ports::endpoint& where,
                                                                acceptor accept) {
  auto loop = accept_loop::make(io_.context(), options_, authenticator_, where, std::move(accept));
  if (!loop)
    return tl::make_unexpected(loop.error());
  (*loop)->start();
  return std::make_unique<asio_listener>(io_, std::move(*loop), where.host);
}

void asio_transport::dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
                          dialled done) {
  // An address in numbers may become this machine's after the start.
  auto own = numeric(options_.dial_from) ? own_addresses(options_.dial_from) : own_;
  start_dialling(io_.context(), options_.timing_now(), authenticator_, std::move(own), where,
                 std::move(hello), std::move(done));
}

} // namespace troupe::os
