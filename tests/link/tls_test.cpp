// Which peers may talk to each other, and what the user reads when the answer is no.

#include "runtime/os/net/tls_peer.hpp"
#include "tests/link/asio_world.hpp"
#include "tests/link/raw_peer.hpp"

#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace {

using namespace troupe;
using namespace troupe::testing;

/// A job's authority and a master that listens with a certificate of it.
struct secure_master {
  temporary_folder folder;
  authority job{folder};
  std::unique_ptr<asio_world> world; // links must not outlive it
  accepted_links accepted;
  std::unique_ptr<ports::listener> listener;

  explicit secure_master(const std::vector<std::string>& names = {os::master_name}) {
    auto options = calm_options();
    options.proven_by = job.issue("master", names);
    world = std::make_unique<asio_world>(std::move(options));
    listener = std::move(*world->transport().listen({"127.0.0.1", 0}, accepted.acceptor()));
  }

  std::uint16_t port() const { return listener->where().port; }

  /// The answer to a node that comes with these files and says it is `name`.
  result<ports::connection_ptr> dialled_by(const os::tls_files& files,
                                           const std::string& name = "node-0",
                                           const std::string& host = "127.0.0.1") {
    auto options = calm_options();
    options.proven_by = files;
    asio_world node(std::move(options));
    auto answer = dial(node, {host, port()}, name);
    // The link must not outlive its world.
    if (answer)
      answer->reset();
    return answer;
  }

  void let_nobody_in() const { CHECK(accepted.names().empty()); }
};

void check_refused(const result<ports::connection_ptr>& answer, const char* words) {
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::refused);
  CHECK_MESSAGE(answer.error().what.find(words) != std::string::npos, answer.error().what);
}

} // namespace

TEST_CASE("a node with a certificate of the job in its name is let in") {
  secure_master master;
  CHECK(master.dialled_by(master.job.issue("node", {"node-0", "10.0.0.7"})));
  CHECK(master.dialled_by(master.job.issue("node", {"node-0", "10.0.0.7"}), "10.0.0.7"));
  CHECK(master.accepted.names() == std::vector<std::string>{"node-0", "10.0.0.7"});
}

TEST_CASE("a node may not take another one's name, not even with a pattern") {
  secure_master master;
  check_refused(master.dialled_by(master.job.issue("node", {"node-1"})),
                "for node-1, not for a node named \"node-0\"");
  check_refused(master.dialled_by(master.job.issue("node", {"*.job", "*"}), "node-0.job"),
                "not for a node named");
  check_refused(master.dialled_by(master.job.issue("node", {})),
                "for no name at all, not for a node named");
  master.let_nobody_in();
}

TEST_CASE("a certificate of another authority is refused at both ends") {
  secure_master master;
  authority other(master.folder, "other");
  auto files = other.issue("node", {"node-0"});
  check_refused(master.dialled_by(files), "peer's certificate is not accepted");
  // Now the node would accept the master, but not the other way round.
  files.authority = master.job.certificate_file();
  check_refused(master.dialled_by(files), "unknown ca");
  master.let_nobody_in();
}

TEST_CASE("an expired certificate is refused, and the node hears so") {
  secure_master master;
  check_refused(master.dialled_by(master.job.issue("node", {"node-0"}, validity::expired)),
                "certificate expired");
  master.let_nobody_in();
}

TEST_CASE("a certificate that was revoked is refused, at both ends, also while the master lives") {
  temporary_folder folder;
  authority job(folder);
  const auto good = job.issue("good", {"node-0"}), bad = job.issue("bad", {"node-0"});
  auto listens = job.issue("master", {os::master_name});
  listens.revoked = job.revoke("revoked", {});
  auto options = calm_options();
  options.proven_by = listens;
  asio_world master(std::move(options));
  accepted_links accepted;
  const auto listener = std::move(*master.transport().listen(master.place(), accepted.acceptor()));
  const auto dialled = [&listener](const os::tls_files& files) {
    auto node_options = calm_options();
    node_options.proven_by = files;
    asio_world node(std::move(node_options));
    auto answer = dial(node, listener->where());
    if (answer)
      answer->reset();
    return answer;
  };
  CHECK(dialled(good));
  CHECK(dialled(bad));
  job.revoke("revoked", {bad});
  CHECK(dialled(good));
  check_refused(dialled(bad), "certificate revoked");
  auto suspicious = good;
  suspicious.revoked = job.revoke("revoked at the node", {listens});
  check_refused(dialled(suspicious), "peer's certificate is not accepted: certificate revoked");
}

TEST_CASE("a revocation list that has expired, or is another authority's, lets no peer in") {
  secure_master master;
  authority other(master.folder, "other");
  auto files = master.job.issue("node", {"node-0"});
  files.revoked = master.job.revoke("old", {}, validity::expired);
  check_refused(master.dialled_by(files), "CRL has expired");
  files.revoked = other.revoke("theirs", {});
  check_refused(master.dialled_by(files), "unable to get certificate CRL");
}

TEST_CASE("in place of an address, a hello carries the one that its link comes from") {
  asio_world world;
  accepted_links accepted;
  auto listener = world.transport().listen(world.place(), accepted.acceptor());
  REQUIRE(dial(world, (*listener)->where()));
  CHECK(accepted.addresses() == std::vector<std::string>{"127.0.0.1"});
}

TEST_CASE("the master must be the one that was dialled") {
  const auto dialled = [](const std::vector<std::string>& names, const std::string& host) {
    secure_master master(names);
    return master.dialled_by(master.job.issue("node", {"node-0"}), "node-0", host);
  };
  CHECK(dialled({"localhost"}, "localhost"));
  CHECK(dialled({"127.0.0.1"}, "127.0.0.1"));
  CHECK(dialled({os::master_name}, "localhost"));
  check_refused(dialled({"node-5", "10.0.0.7"}, "127.0.0.1"),
                "the master's certificate is for node-5, 10.0.0.7, neither for 127.0.0.1 nor for "
                "troupe-master");
}

TEST_CASE("a client without a certificate, or with an old protocol, gets nowhere") {
  secure_master master;
  const auto said = on_wire(1, hello().any());
  const auto node = master.job.issue("node", {"node-0"});
  CHECK(raw_tls_client(master.port(), node.certificate, node.key, said, TLS1_3_VERSION) == "taken");
  CHECK(master.accepted.names().size() == 1);
  CHECK(raw_tls_client(master.port(), "", "", said, TLS1_3_VERSION) ==
        "tlsv13 alert certificate required");
  CHECK(raw_tls_client(master.port(), node.certificate, node.key, said, TLS1_2_VERSION) ==
        "tlsv1 alert protocol version");
  CHECK(master.accepted.names().size() == 1);
}

TEST_CASE("a plain node at a TLS master does not get in and may try again") {
  secure_master master;
  asio_world node;
  const auto answer = dial(node, master.listener->where());
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::closed);
  master.let_nobody_in();
}

TEST_CASE("a TLS node at a plain master does not get in and may try again") {
  secure_master elsewhere;
  asio_world plain;
  accepted_links accepted;
  auto listener = plain.transport().listen(plain.place(), accepted.acceptor());
  auto options = calm_options();
  options.proven_by = elsewhere.job.issue("node", {"node-0"});
  asio_world node(std::move(options));
  const auto answer = dial(node, (*listener)->where());
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::closed);
  CHECK(answer.error().what.find("during the TLS handshake") != std::string::npos);
  CHECK(accepted.names().empty());
}

TEST_CASE("a peer that begins a TLS handshake and does not finish it is let go") {
  temporary_folder folder;
  authority job(folder);
  auto options = calm_options();
  options.proven_by = job.issue("master", {os::master_name});
  options.link.handshake_within = 100ms;
  asio_world world(std::move(options));
  accepted_links accepted;
  auto listener = world.transport().listen(world.place(), accepted.acceptor());
  raw_peer silent((*listener)->where().port);
  raw_peer half((*listener)->where().port);
  REQUIRE(half.send({0x16, 0x03, 0x01, 0x02, 0x00, 0x01}));
  CHECK(silent.read_to_end().empty());
  CHECK(half.read_to_end().empty());
  CHECK(accepted.names().empty());
}

TEST_CASE("files that are missing or wrong are named at the start") {
  temporary_folder folder;
  authority job(folder);
  const auto good = job.issue("good", {"node-0"});
  const auto other = job.issue("other", {"node-0"});
  const auto garbage = folder.write("garbage", "no PEM in here\n");
  const auto locked = folder.write(
      "locked",
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n");
  const auto error_text = [](const os::tls_files& files) {
    os::io_thread io;
    auto options = calm_options();
    options.proven_by = files;
    const auto made = os::asio_transport::make(io, options);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid);
    CHECK(made.error().what.find('\n') == std::string::npos);
    return made.error().what;
  };
  const auto missing = folder.file("missing");
  CHECK(error_text({missing, good.key, good.authority}) ==
        "cannot read the TLS certificate file " + missing + ": No such file or directory");
  CHECK(error_text({good.certificate, missing, good.authority}) ==
        "cannot read the TLS key file " + missing + ": No such file or directory");
  CHECK(error_text({good.certificate, good.key, missing}) ==
        "cannot read the TLS authority file " + missing + ": No such file or directory");
  CHECK(error_text({good.certificate, folder.file(""), good.authority}).find("Is a directory") !=
        std::string::npos);
  CHECK(error_text({garbage, good.key, good.authority}).find("no usable PEM certificate") !=
        std::string::npos);
  CHECK(error_text({good.certificate, garbage, good.authority}).find("no PEM key") !=
        std::string::npos);
  CHECK(error_text({good.certificate, locked, good.authority}).find("with a passphrase") !=
        std::string::npos);
  CHECK(error_text({good.certificate, good.key, garbage}).find("no usable PEM certificate") !=
        std::string::npos);
  CHECK(error_text({good.certificate, other.key, good.authority}).find("does not belong to") !=
        std::string::npos);
  CHECK(error_text({good.certificate, good.key, good.authority, missing}) ==
        "cannot read the TLS revocation list file " + missing + ": No such file or directory");
  CHECK(error_text({good.certificate, good.key, good.authority, good.certificate})
            .find("no usable PEM list") != std::string::npos);
}

TEST_CASE("without a token or certificates only loopback addresses may be used") {
  asio_world world;
  accepted_links accepted;
  for (const std::string host : {"*", "", "0.0.0.0", "::", "192.0.2.1"}) {
    CAPTURE(host);
    const auto refused = world.transport().listen({host, 0}, accepted.acceptor());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::refused);
    CHECK(refused.error().what.find("needs a job token") != std::string::npos);
  }
  check_refused(dial(world, {"192.0.2.1", 4'711}), "dialling 192.0.2.1:4711 needs a job token");
}

TEST_CASE("one can listen on a name, on either family, and on every address") {
  temporary_folder folder;
  authority job(folder);
  auto options = calm_options();
  options.proven_by = job.issue("both", {"node-0", os::master_name});
  asio_world world(std::move(options));
  const auto reachable = [&world](const std::string& host, const std::vector<std::string>& by) {
    CAPTURE(host);
    accepted_links accepted;
    auto listener = world.transport().listen({host, 0}, accepted.acceptor());
    REQUIRE_MESSAGE(listener.has_value(), listener.error().what);
    for (const auto& each : by) {
      CAPTURE(each);
      const auto answer = dial(world, {each, (*listener)->where().port});
      CHECK_MESSAGE(answer.has_value(), answer.error().what);
    }
    CHECK(accepted.names().size() == by.size());
  };
  reachable("localhost", {"localhost", "127.0.0.1"});
  reachable("127.0.0.1", {"127.0.0.1", "localhost"});
  reachable("*", {"127.0.0.1", "localhost"});
  reachable("0.0.0.0", {"127.0.0.1"});
  // A container may have no IPv6 at all.
  accepted_links accepted;
  if (const auto v6 = world.transport().listen({"::1", 0}, accepted.acceptor())) {
    reachable("::1", {"::1"});
    reachable("::", {"::1", "127.0.0.1"});
    reachable("*", {"::1", "127.0.0.1"});
  } else {
    CHECK(v6.error().code == errc::refused);
  }
}

TEST_CASE("a name that does not exist is answered, and may be tried again") {
  asio_world world;
  const auto answer = dial(world, {"no-such-host.invalid", 1});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::unavailable);
}

TEST_CASE("many nodes at once are no attack: all of them get their handshake") {
  temporary_folder folder;
  authority job(folder);
  auto options = calm_options();
  options.proven_by = job.issue("both", {"node-0", os::master_name});
  options.unproven_max = 4;
  options.unproven_grace = 59s;
  options.accept_backoff = 1ms;
  options.link.dial_within = 60s;
  options.link.handshake_within = 60s;
  asio_world world(options);
  accepted_links accepted;
  auto listener = world.transport().listen(world.place(), accepted.acceptor());
  // Each node comes from an address of its own.
  std::vector<std::unique_ptr<asio_world>> nodes;
  std::vector<dial_answer> answers(60);
  for (auto& each : answers) {
    options.dial_from = "127.1.0." + std::to_string(nodes.size() + 1);
    nodes.push_back(std::make_unique<asio_world>(options));
    nodes.back()->transport().dial((*listener)->where(), hello(), each.callback());
  }
  for (auto& each : answers) {
    REQUIRE(eventually([&each] { return each.count() == 1; }, 60s));
    const auto answer = each.take();
    CHECK_MESSAGE(answer.has_value(), answer.error().what);
  }
  CHECK(accepted.names().size() == answers.size());
}

TEST_CASE("want of memory is this process's fault, and not the peer's") {
  const boost::system::error_code ec(
      static_cast<int>(ERR_PACK(ERR_LIB_PROV, 0, ERR_R_MALLOC_FAILURE)),
      boost::asio::error::get_ssl_category());
  const auto why = os::tls_failure(nullptr, ec);
  CHECK(why.code == errc::unavailable);
  CHECK(why.what.find("this process is out of memory (see ulimit -v; TLS: ") == 0);
}
