#include "runtime/os/net/authenticator.hpp"

#include "runtime/os/net/local_token.hpp"
#include "runtime/os/net/token_tls.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include <sys/stat.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
using endpoint = asio::ip::tcp::endpoint;

/// One that asks the same of every connection.
class uniform_authenticator : public authenticator,
                              public std::enable_shared_from_this<uniform_authenticator> {
 public:
  result<std::unique_ptr<server_side>> open(const std::vector<endpoint>&) override {
    return std::make_unique<uniform_server_side>(shared_from_this());
  }
  void dial(const endpoint&, instant, found done) override { done(context()); }

 protected:
  virtual tls_context context() = 0;

 private:
  struct uniform_server_side final : server_side {
    explicit uniform_server_side(std::shared_ptr<uniform_authenticator> of)
        : whole(std::move(of)) {}
    tls_context context() override { return whole->context(); }
    const std::shared_ptr<uniform_authenticator> whole;
  };
};

class no_authenticator final : public uniform_authenticator {
 public:
  bool loopback_only() const override { return true; }

 private:
  tls_context context() override { return nullptr; }
};

class token_authenticator final : public uniform_authenticator {
 public:
  explicit token_authenticator(const job_token& token) : context_(token_tls(token)) {}
  bool loopback_only() const override { return false; }

 private:
  tls_context context() override { return context_; }

  const tls_context context_;
};

/// Certificates get old and are replaced while a job runs: the files are read again when they have
/// changed. Links that exist stay as they are.
class certificate_authenticator final : public uniform_authenticator {
 public:
  static result<std::shared_ptr<authenticator>> make(const tls_files& files, log::sink log) {
    // Before the files are read: what changes meanwhile is read again.
    const auto seen = look(files);
    auto context = load_tls(files);
    if (!context)
      return tl::make_unexpected(context.error());
    return std::shared_ptr<authenticator>(
        new certificate_authenticator(files, std::move(*context), seen, std::move(log)));
  }

  bool loopback_only() const override { return false; }

 private:
  /// When and how long each of the files was: a replaced file differs in one of them.
  using appearance = std::array<std::array<std::int64_t, 4>, 4>;

  certificate_authenticator(tls_files files, tls_context context, appearance seen, log::sink log)
      : files_(std::move(files)), context_(std::move(context)), seen_(seen), log_(std::move(log)) {}

  static appearance look(const tls_files& files) {
    appearance seen{};
    std::size_t i = 0;
    for (const auto* path : {&files.certificate, &files.key, &files.authority, &files.revoked}) {
      struct stat facts {};
      if (::stat(path->c_str(), &facts) == 0)
        seen[i] = {static_cast<std::int64_t>(facts.st_ino), facts.st_size, facts.st_mtim.tv_sec,
                   facts.st_mtim.tv_nsec};
      ++i;
    }
    return seen;
  }

  tls_context context() override {
    const auto now = look(files_);
    if (std::exchange(seen_, now) == now)
      return context_;
    auto fresh = load_tls(files_);
    if (fresh)
      context_ = std::move(*fresh);
    // Half of them may be written yet: the next change is looked at again.
    log_("link", {fresh ? log::level::info : log::level::warning,
                  fresh ? "certificates_renewed" : "certificates_not_renewed",
                  fresh ? std::string("new connections use the changed certificates")
                        : fmt::format("the certificates have changed and are not used: {}",
                                      fresh.error().what),
                  {}});
    return context_;
  }

  const tls_files files_;
  tls_context context_;
  appearance seen_;
  const log::sink log_;
};

} // namespace

result<std::shared_ptr<authenticator>>
make_authenticator(const proof& how, asio::io_context& context, log::sink log) {
  if (const auto* files = std::get_if<tls_files>(&how))
    return certificate_authenticator::make(*files, std::move(log));
  if (const auto* token = std::get_if<job_token>(&how))
    return std::make_shared<token_authenticator>(*token);
  if (std::holds_alternative<local_token>(how))
    return make_local_authenticator(context, std::move(log));
  return std::make_shared<no_authenticator>();
}

} // namespace troupe::os
