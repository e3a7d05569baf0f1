#include "launch/doctor/proof.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch::doctor;

namespace {

constexpr std::int64_t day = 86'400;

proof_facts beyond_this_machine() {
  proof_facts seen;
  seen.endpoint = "host0:29400";
  seen.loopback = false;
  seen.default_file = "/home/ada/.config/troupe/token";
  return seen;
}

proof_facts certificates_for(std::int64_t own, std::int64_t authority) {
  auto seen = beyond_this_machine();
  seen.certificates = true;
  seen.own = os::certificate_time{-day, own};
  seen.authority = os::certificate_time{-day, authority};
  return seen;
}

} // namespace

TEST_SUITE("doctor: proof") {
  TEST_CASE("on one machine none is needed; beyond it one is") {
    CHECK(judge(proof_facts{}).how == grade::ok);
    const auto f = judge(beyond_this_machine());
    CHECK(f.how == grade::error);
    CHECK(f.found == "host0:29400 is to be reached from other machines, and there is no token "
                     "(/home/ada/.config/troupe/token is not there)");
    CHECK(f.remedy.find("--new-token") != std::string::npos);
  }

  TEST_CASE("which token is used, and what is wrong with it") {
    auto seen = beyond_this_machine();
    seen.token_from = "/etc/token";
    CHECK(judge(seen).how == grade::ok);
    CHECK(judge(seen).found == "that of /etc/token is used; all nodes need the same");
    seen.token_error = "the token file /etc/token may be read by others";
    CHECK(judge(seen).how == grade::error);
    CHECK(judge(seen).found == seen.token_error);
  }

  TEST_CASE("certificates: unreadable, not yet, soon no more, no more") {
    CHECK(judge(certificates_for(90 * day, 900 * day)).how == grade::ok);
    const auto soon = judge(certificates_for(90 * day, 3 * day));
    CHECK(soon.how == grade::warning);
    CHECK(soon.found == "the authority's expires in 3 days");
    const auto over = judge(certificates_for(-2 * day, 900 * day));
    CHECK(over.how == grade::error);
    CHECK(over.found == "this node's has expired 2 days ago");
    auto early = certificates_for(90 * day, 900 * day);
    early.own->begins_in = 60;
    CHECK(judge(early).how == grade::error);
    CHECK(judge(early).found == "this node's is not valid yet");
    early.certificates_error = "cannot read the TLS key file k.pem: Permission denied";
    CHECK(judge(early).found == early.certificates_error);
  }
}
