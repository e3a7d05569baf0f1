#pragma once

#include "runtime/base/result.hpp"

#include <array>
#include <string>

namespace troupe::os {

/// A secret that the processes of a job share, and no others know. It never travels: both ends of a
/// link prove that they know it (token_tls.hpp).
class job_token {
 public:
  /// From what a person or a program gave; white space around it does not count. `invalid` with one
  /// line that does not tell the secret.
  static result<job_token> parse(const std::string& text);

  /// From a file that belongs to this user, and that no other user may read; or to root, as secrets
  /// of Kubernetes do, and then its group may read it too. `invalid` with one line for the user.
  static result<job_token> read(const std::string& path);

  /// Into a new file that only this user may read, with the directories above it. `refused` if
  /// something is there: what it is may be in use.
  result<void> write_new(const std::string& path) const;

  /// A new one, from the kernel's generator.
  static job_token fresh();

  /// What TLS is given: HKDF of the secret, so that the token itself serves nothing else.
  std::array<unsigned char, 32> key() const;

  const std::string& secret() const { return secret_; }

 private:
  explicit job_token(std::string secret) : secret_(std::move(secret)) {}

  std::string secret_;
};

} // namespace troupe::os
