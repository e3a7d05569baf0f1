#include "launch/doctor/proof.hpp"

#include "launch/wiring/default_token.hpp"
#include "launch/wiring/placement.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/job_token.hpp"
#include "runtime/os/net/tls.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch::doctor {

namespace {

constexpr std::int64_t day = 86'400;
/// A job that trains for weeks dials anew after each cut of the network.
constexpr std::int64_t soon = 14 * day;

std::int64_t left(const std::optional<os::certificate_time>& t) {
  return t ? t->ends_in : soon;
}

bool is_early(const std::optional<os::certificate_time>& t) {
  return t && t->begins_in > 0;
}

finding judge_certificates(const proof_facts& seen) {
  finding f{"certificates"};
  f.costs = "the other nodes refuse this one";
  if (!seen.certificates_error.empty()) {
    f.how = grade::error;
    f.found = seen.certificates_error;
    f.remedy = "correct the file of --certificate, --key, --authority or --crl";
    return f;
  }
  f.remedy = "issue a new one (a running job reads changed files by itself)";
  const auto least = std::min(left(seen.own), left(seen.authority));
  const auto* whose = least == left(seen.own) ? "this node's" : "the authority's";
  if (is_early(seen.own) || is_early(seen.authority)) {
    f.how = grade::error;
    f.found =
        fmt::format("{} is not valid yet", is_early(seen.own) ? "this node's" : "the authority's");
    f.remedy = "look at the clocks of this machine and of the one that issued it";
  } else if (least < 0) {
    f.how = grade::error;
    f.found = fmt::format("{} has expired {} days ago", whose, -least / day);
  } else if (least < soon) {
    f.how = grade::warning;
    f.found = fmt::format("{} expires in {} days", whose, least / day);
    f.costs = "from then on a link that was cut is not made again";
  } else {
    f.found = "they can be read, belong together and have not expired";
    f.costs = f.remedy = {};
  }
  return f;
}

} // namespace

finding judge(const proof_facts& seen) {
  if (seen.certificates)
    return judge_certificates(seen);
  finding f{"token"};
  if (!seen.token_error.empty()) {
    f.how = grade::error;
    f.found = seen.token_error;
    f.costs = "the launcher ends";
    f.remedy =
        "chmod 600 the file (in Kubernetes: defaultMode 0400 of the Secret's volume) and give "
        "it to this user, or make a new one: actor-launcher --new-token";
    return f;
  }
  if (!seen.token_from.empty()) {
    f.found = fmt::format("that of {} is used; all nodes need the same", seen.token_from);
    return f;
  }
  if (seen.loopback) {
    f.found = "none is needed: one is made for processes of this user on this machine";
    return f;
  }
  f.how = grade::error;
  f.found =
      fmt::format("{} is to be reached from other machines, and there is no token{}", seen.endpoint,
                  seen.default_file.empty() ? "" : " (" + seen.default_file + " is not there)");
  f.costs = "the launcher ends";
  f.remedy = "actor-launcher --new-token makes the file; copy it to the same place on each node";
  return f;
}

proof_facts look_at_proof(const launcher_options& o, const machine_facts& machine) {
  proof_facts seen;
  auto common = o.common;
  const auto master = place_master(o).master;
  seen.endpoint = ports::to_string(master);
  const auto own = os::own_addresses(master.host);
  seen.loopback = os::is_loopback(master.host) ||
                  (!own.empty() && std::all_of(own.begin(), own.end(),
                                               [](const auto& a) { return a.is_loopback(); }));
  seen.default_file = default_token_file(machine);
  take_default_token(common, master, machine);
  if (!common.certificate.empty()) {
    seen.certificates = true;
    const os::tls_files files{common.certificate, common.key, common.authority, common.revoked};
    if (const auto loaded = os::load_tls(files); !loaded)
      seen.certificates_error = loaded.error().what;
    seen.own = os::time_of_certificate(common.certificate);
    seen.authority = os::time_of_certificate(common.authority);
    return seen;
  }
  if (!common.token.empty()) {
    seen.token_from = token_variable;
    if (const auto parsed = os::job_token::parse(common.token); !parsed)
      seen.token_error = parsed.error().what;
  } else if (!common.token_file.empty()) {
    seen.token_from = common.token_file;
    if (const auto read = os::job_token::read(common.token_file); !read)
      seen.token_error = read.error().what;
  }
  return seen;
}

} // namespace troupe::launch::doctor
