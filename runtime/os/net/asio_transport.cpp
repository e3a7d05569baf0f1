#include "runtime/os/net/asio_transport.hpp"

#include "runtime/os/net/asio_dial.hpp"
#include "runtime/os/net/asio_listener.hpp"

namespace troupe::os {

namespace {

class asio_listener final : public ports::listener {
 public:
  asio_listener(std::shared_ptr<accept_loop> loop, std::string host)
      : loop_(std::move(loop)), host_(std::move(host)) {}
  ~asio_listener() override { loop_->shut(); }
  ports::endpoint where() const override { return {host_, loop_->port()}; }

 private:
  std::shared_ptr<accept_loop> loop_;
  std::string host_;
};

} // namespace

result<std::unique_ptr<asio_transport>> asio_transport::make(io_thread& io,
                                                             transport_options options) {
  if (auto fine = link::validate(options.link); !fine)
    return tl::make_unexpected(fine.error());
  std::shared_ptr<boost::asio::ssl::context> tls;
  if (options.tls) {
    auto loaded = load_tls(*options.tls);
    if (!loaded)
      return tl::make_unexpected(loaded.error());
    tls = std::move(*loaded);
  }
  return std::unique_ptr<asio_transport>(
      new asio_transport(io, std::move(options), std::move(tls)));
}

result<std::unique_ptr<ports::listener>> asio_transport::listen(const ports::endpoint& where,
                                                                acceptor accept) {
  auto loop = accept_loop::make(io_.context(), options_, tls_, where, std::move(accept));
  if (!loop)
    return tl::make_unexpected(loop.error());
  (*loop)->start();
  return std::make_unique<asio_listener>(std::move(*loop), where.host);
}

void asio_transport::dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
                          dialled done) {
  start_dialling(io_.context(), options_.link, tls_, where, std::move(hello), std::move(done));
}

} // namespace troupe::os
