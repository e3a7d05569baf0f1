#include "runtime/link/hello.hpp"

#include "messages/kinds.hpp"
#include "messages/text.hpp"
#include "runtime/link/role_names.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using role = messages::Hello::Role;

namespace {

/// Empty, or why a peer with these names in its certificate may not say this.
std::string judged(const std::vector<std::string>& proven, role as, const std::string& name) {
  const auto said = messages::build<messages::Hello>({}, [&](messages::Hello::Builder out) {
    out.setNode(name);
    out.setRole(as);
  });
  const auto fine = link::check_names(proven, *said.read());
  if (!fine)
    CHECK(fine.error().code == errc::refused);
  return fine ? "" : fine.error().what;
}

} // namespace

TEST_CASE("a certificate lets its owner be the nodes that it names") {
  for (const auto as : {role::NODE, role::PEER}) {
    CHECK(judged({"node-0"}, as, "node-0") == "");
    CHECK(judged({"10.0.0.7", "node-0"}, as, "node-0") == "");
    CHECK(judged({"node-1"}, as, "node-0") ==
          "the certificate is for node-1, not for a node named \"node-0\"");
    CHECK(judged({}, as, "node-0") ==
          "the certificate is for no name at all, not for a node named \"node-0\"");
    CHECK(judged({"node-0"}, as, "NODE-0") != "");
    CHECK(judged({"*"}, as, "node-0") != "");
  }
}

TEST_CASE("the name of the role lets its owner look, and do nothing else") {
  CHECK(judged({link::shell_name}, role::SHELL, "shell-4711") == "");
  CHECK(judged({"node-0", link::shell_name}, role::SHELL, "shell-4711") == "");
  CHECK(judged({"node-0"}, role::SHELL, "shell-4711") ==
        "the certificate is for node-0, and only one that carries the name troupe-shell may look "
        "at the job");
  CHECK(judged({"node-0"}, role::SHELL, "node-0") != "");
  CHECK(judged({link::shell_name}, role::NODE, "node-0") != "");
  CHECK(judged({link::shell_name}, role::PEER, "node-0") != "");
}

TEST_CASE("another name lets its owner change the job, and look at it") {
  const auto may = [](const std::string& proven, bool changes) {
    const auto said = messages::build<messages::Hello>({}, [&](messages::Hello::Builder out) {
      out.setNode("shell-4711");
      out.setRole(role::SHELL);
      out.setChangesJob(changes);
    });
    const auto fine = link::check_names({proven}, *said.read());
    return fine ? "" : fine.error().what;
  };
  CHECK(may(link::admin_name, true) == "");
  CHECK(may(link::admin_name, false) == "");
  CHECK(may(link::shell_name, false) == "");
  CHECK(may(link::shell_name, true) ==
        "the certificate is for troupe-shell, and only one that carries the name troupe-admin may "
        "change the job");
  CHECK(may("node-0", true).find("may change the job") != std::string::npos);
  CHECK(judged({link::admin_name}, role::NODE, "node-0") != "");
}

TEST_CASE("a role's name is no node's") {
  for (const auto* name : {link::shell_name, link::master_name, link::admin_name})
    for (const auto as : {role::NODE, role::PEER})
      CHECK(judged({link::shell_name, link::master_name}, as, name).find("is the name of a role") !=
            std::string::npos);
}

TEST_CASE("the master may probe the network to its nodes, and carry nothing else to them") {
  const auto judged_for = [](const std::vector<std::string>& proven, role as,
                             messages::Hello::Purpose purpose) {
    const auto said = messages::build<messages::Hello>({}, [&](messages::Hello::Builder out) {
      out.setNode(link::master_name);
      out.setRole(as);
      out.setPurpose(purpose);
    });
    return link::check_names(proven, *said.read()).has_value();
  };
  using purpose = messages::Hello::Purpose;
  CHECK(judged_for({"head", link::master_name}, role::PEER, purpose::PROBE));
  CHECK_FALSE(judged_for({"head"}, role::PEER, purpose::PROBE));
  CHECK_FALSE(judged_for({link::master_name}, role::PEER, purpose::COPIES));
  CHECK_FALSE(judged_for({link::master_name}, role::NODE, purpose::PROBE));
}

TEST_CASE("a hello without an address gets the link's; one that says an address keeps it") {
  const auto full = messages::from_text(
      "Hello",
      R"((job = "j", node = "n", incarnation = 7, role = peer, slots = 3, wantedRank = 2,
          state = (generation = 4, phase = failed, failures = [(node = "n", exitCode = 1)]),
          nodesMin = 1, nodesMax = 5, stopWithinMs = 3000,
          command = (text = "t.py", script = 8, arguments = 9), workerRole = "trainer"))",
      {"n/uplink", term{3}, generation{4}, 9, 0});
  REQUIRE(full);
  const auto named = link::with_address(full->as<messages::Hello>(), "10.0.0.7");
  CHECK(named.read()->getAddress() == "10.0.0.7");
  CHECK(named.envelope().follows == term{3});
  CHECK(named.envelope().sequence == 9);
  auto without = messages::to_text(named.any());
  const std::string added = ", address = \"10.0.0.7\"";
  without.erase(without.find(added), added.size());
  CHECK(without == messages::to_text(*full));
  CHECK(link::with_address(named, "10.0.0.8").read()->getAddress() == "10.0.0.7");
}
