#pragma once

#include "launch/doctor/finding.hpp"
#include "launch/options/options.hpp"
#include "runtime/os/net/certificate_time.hpp"

#include <optional>
#include <string>

/// By what the job's processes prove themselves to each other.
namespace troupe::launch::doctor {

struct proof_facts {
  std::string endpoint; ///< of the master
  /// Only processes of this machine meet there: a token is made for them.
  bool loopback = true;
  /// The token: its file, or the variable that holds it; and what is wrong with it.
  std::string token_from;
  std::string token_error;
  /// Where the user's own token would be looked for.
  std::string default_file;
  bool certificates = false;
  std::string certificates_error;
  /// Of our own certificate, and of the authority's.
  std::optional<os::certificate_time> own, authority;
};
proof_facts look_at_proof(const launcher_options& o, const machine_facts& machine);
finding judge(const proof_facts& seen);

} // namespace troupe::launch::doctor
