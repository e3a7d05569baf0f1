#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/net/job_token.hpp"
#include "runtime/os/net/tls.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace troupe::os {

/// No proof at all: for tests of what lies below. Loopback addresses only.
struct no_proof {};

/// A token that every master makes anew and hands to processes of the same user on this machine
/// (local_token.hpp). Loopback addresses only.
struct local_token {};

/// How the two ends of a link prove themselves to each other.
using proof = std::variant<no_proof, local_token, job_token, tls_files>;

/// Decides, for each connection anew, with what it is encrypted and proven. Belongs to the I/O
/// thread, but for loopback_only() and open().
class authenticator {
 public:
  virtual ~authenticator() = default;

  /// Whether addresses that others can reach are forbidden.
  virtual bool loopback_only() const = 0;

  /// What a listener holds while it is open; dropped on the I/O thread.
  class server_side {
   public:
    virtual ~server_side() = default;
    /// For a connection that was just accepted; null: it stays plain.
    virtual tls_context context() = 0;
  };
  virtual result<std::unique_ptr<server_side>>
  open(const std::vector<boost::asio::ip::tcp::endpoint>& bound) = 0;

  using found = std::function<void(result<tls_context>)>;
  /// For a connection to `address` that was just made. Answers once, at the latest at `deadline`.
  virtual void dial(const boost::asio::ip::tcp::endpoint& address, instant deadline,
                    found done) = 0;
};

/// `invalid` with one line for the user if what is to be proven cannot be.
result<std::shared_ptr<authenticator>>
make_authenticator(const proof& how, boost::asio::io_context& context, log::sink log);

} // namespace troupe::os
