#include "runtime/os/kube/api_client.hpp"

#include "runtime/os/kube/api_exchange.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <utility>

namespace troupe::os {

namespace asio = boost::asio;
namespace ssl = asio::ssl;

namespace {

result<void> take_certificates(ssl::context& tls, const api_access& a) {
  const auto lacks = [&a](const char* what, const boost::system::error_code& why) {
    return failure(errc::unavailable,
                   fmt::format("{} has no {}: {}", a.source, what, why.message()));
  };
  boost::system::error_code wrong;
  if (a.authority.empty())
    tls.set_default_verify_paths(wrong);
  else
    tls.add_certificate_authority(asio::buffer(a.authority), wrong);
  if (wrong)
    return lacks("certificate of an authority", wrong);
  if (a.certificate.empty())
    return {};
  // An encrypted key would be asked for at the terminal.
  tls.set_password_callback([](std::size_t, ssl::context::password_purpose) { return ""; }, wrong);
  if (tls.use_certificate_chain(asio::buffer(a.certificate), wrong); wrong)
    return lacks("certificate of the user", wrong);
  if (tls.use_private_key(asio::buffer(a.key), ssl::context::pem, wrong); wrong)
    return lacks("key of the user's certificate", wrong);
  return {};
}

} // namespace

result<std::unique_ptr<api_client>> api_client::open(io_thread& io, api_access access) {
  auto s = std::make_shared<api_shared>(io.context(), std::move(access));
  s->tls.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                     ssl::context::no_tlsv1_1);
  if (const auto taken = take_certificates(s->tls, s->access); !taken)
    return tl::make_unexpected(taken.error());
  s->tls.set_verify_mode(ssl::verify_peer);
  return std::unique_ptr<api_client>(new api_client(std::move(s)));
}

api_client::~api_client() {
  shared_->closed = true;
}

void api_client::call(const kube::api_request& what, done answered) {
  if (shared_->under_way >= limits::api_calls_max) {
    asio::post(shared_->context, [answered = std::move(answered)] {
      answered({0, "too many calls to the API server are under way", {}});
    });
    return;
  }
  std::make_shared<api_exchange>(shared_, nullptr, std::move(answered))->start(what);
}

std::shared_ptr<api_exchange> api_client::watch(const kube::api_request& what, line told,
                                                done ended) {
  auto made = std::make_shared<api_exchange>(shared_, std::move(told), std::move(ended));
  made->start(what);
  return made;
}

} // namespace troupe::os
