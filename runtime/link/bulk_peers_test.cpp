#include "runtime/link/bulk_peers.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using messages::Hello;
using ports::bulk_purpose;

namespace {

messages::msg<Hello> hello(Hello::Role role, const char* job, bulk_purpose purpose) {
  return messages::build<Hello>({"stranger"}, [&](Hello::Builder b) {
    b.setJob(job);
    b.setNode("stranger");
    b.setRole(role);
    b.setPurpose(purpose);
  });
}

} // namespace

TEST_CASE("a node's hello for a bulk link says its name, its job and what the link is for") {
  messages::author as("a/bulk");
  const auto m = link::bulk_hello(as, "job", "a", bulk_purpose::PROBE);
  auto h = m.read();
  CHECK(h->getRole() == Hello::Role::PEER);
  CHECK(h->getPurpose() == bulk_purpose::PROBE);
  CHECK(h->getAddress().size() == 0); // the transport's to say
  CHECK_FALSE(link::bulk_refusal(*h, {"job", true, 0, 1}));
}

TEST_CASE("which peers get no bulk link, and why") {
  struct row {
    Hello::Role role;
    const char* job;
    bulk_purpose purpose;
    link::bulk_place here;
    const char* why;
  };
  const auto peer = Hello::Role::PEER;
  const auto copies = bulk_purpose::COPIES;
  const auto dials_master =
      "here are bulk links between nodes: only peers may dial, all others dial the master";
  const std::vector<row> rows = {
      {Hello::Role::NODE, "job", copies, {"job", true, 0, 9}, dials_master},
      {Hello::Role::SHELL, "job", copies, {"job", true, 0, 9}, dials_master},
      {peer,
       "another",
       copies,
       {"job", true, 0, 9},
       "here are bulk links of job \"job\", not of job \"another\""},
      {peer,
       "job",
       copies,
       {"job", false, 0, 9},
       "this node takes no copies of other nodes' images"},
      {peer,
       "job",
       bulk_purpose::PROBE,
       {"job", false, 0, 9},
       "this node takes no part in checks of the network"},
      {peer,
       "job",
       static_cast<bulk_purpose>(77),
       {"job", false, 0, 9},
       "this node does not know purpose 77 of a bulk link: is the other node's Troupe a later "
       "version?"},
      {peer, "job", copies, {"job", true, 9, 9}, "9 bulk links of other nodes are here already"},
      // What is wrong for good is said first.
      {Hello::Role::NODE, "another", copies, {"job", false, 9, 9}, dials_master},
      {peer,
       "another",
       copies,
       {"job", false, 9, 9},
       "here are bulk links of job \"job\", not of job \"another\""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.why);
    const auto m = hello(r.role, r.job, r.purpose);
    CHECK(link::bulk_refusal(*m.read(), r.here).value_or("") == r.why);
  }
  const auto welcome = hello(peer, "job", copies);
  CHECK_FALSE(link::bulk_refusal(*welcome.read(), {"job", true, 8, 9}));
}
