#pragma once

#include "runtime/os/net/tls.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::testing {

/// A folder of its own, removed with it.
class temporary_folder {
 public:
  temporary_folder();
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

enum class validity { now, expired };

/// A certificate authority of a test's own (ECDSA P-256), with the files it issues.
class authority {
 public:
  explicit authority(const temporary_folder& folder, const std::string& name = "authority");
  ~authority();

  /// A certificate for these DNS names and addresses, and its key, in files.
  os::tls_files issue(const std::string& file, const std::vector<std::string>& names,
                      validity when = validity::now) const;

  /// A revocation list of these certificates, written to (or over) a file of this name.
  std::string revoke(const std::string& file, const std::vector<os::tls_files>& revoked,
                     validity when = validity::now) const;

  const std::string& certificate_file() const { return certificate_file_; }

 private:
  struct identity;
  const temporary_folder& folder_;
  std::unique_ptr<identity> self_;
  std::string certificate_file_;
};

} // namespace troupe::testing
