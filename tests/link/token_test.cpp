// Peers that prove the job token, and what both ends read when one does not.

#include "runtime/os/net/job_token.hpp"
#include "tests/link/asio_world.hpp"
#include "tests/link/child.hpp"
#include "tests/link/raw_peer.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace troupe;
using namespace troupe::testing;

constexpr auto secret = "0123456789abcdef0123456789abcdef";
constexpr auto another = "fedcba9876543210fedcba9876543210";

os::proof token(const char* text) {
  return *os::job_token::parse(text);
}

/// What a listener's log says.
class book {
 public:
  log::sink sink() {
    return [kept = kept_](const std::string&, const log::event& e) {
      const std::lock_guard lock(kept->mutex);
      kept->lines.push_back(e.text);
    };
  }

  bool tells(const std::string& words) const {
    const std::lock_guard lock(kept_->mutex);
    for (const auto& line : kept_->lines)
      if (line.find(words) != std::string::npos)
        return true;
    return false;
  }

  std::string all() const {
    const std::lock_guard lock(kept_->mutex);
    return fmt::format("{}", fmt::join(kept_->lines, "\n"));
  }

 private:
  struct kept {
    std::mutex mutex;
    std::vector<std::string> lines;
  };
  std::shared_ptr<kept> kept_ = std::make_shared<kept>();
};

struct authenticating_master {
  book log;
  std::unique_ptr<asio_world> world; // links must not outlive it
  accepted_links accepted;
  std::unique_ptr<ports::listener> listener;

  explicit authenticating_master(os::proof by, const std::string& host = "127.0.0.1",
                                 os::transport_options options = calm_options()) {
    options.proven_by = std::move(by);
    options.log = log.sink();
    world = std::make_unique<asio_world>(std::move(options));
    auto open = world->transport().listen({host, 0}, accepted.acceptor());
    REQUIRE_MESSAGE(open.has_value(), open.error().what);
    listener = std::move(*open);
  }

  result<ports::connection_ptr> dialled_by(os::proof by, const std::string& name = "node-0",
                                           const std::string& host = "127.0.0.1") {
    auto options = calm_options();
    options.proven_by = std::move(by);
    asio_world node(std::move(options));
    auto answer = dial(node, {host, listener->where().port}, name);
    // The link must not outlive its world.
    if (answer)
      answer->reset();
    return answer;
  }

  /// Refused at both ends, each with its words; no peer was let in.
  void turns_away(os::proof by, errc how, const char* told_there, const char* told_here) {
    const auto answer = dialled_by(std::move(by));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == how);
    CHECK_MESSAGE(answer.error().what.find(told_there) != std::string::npos, answer.error().what);
    CHECK(answer.error().what.find('\n') == std::string::npos);
    CHECK_MESSAGE(eventually([&] { return log.tells(told_here); }), log.all());
    CHECK(accepted.names().empty());
  }
};

} // namespace

TEST_CASE("a peer that knows the job's token is let in, under any name and from anywhere") {
  authenticating_master master(token(secret), "*");
  CHECK(master.dialled_by(token(secret)));
  CHECK(master.dialled_by(token(secret), "node-1", "localhost"));
  CHECK(master.accepted.names() == std::vector<std::string>{"node-0", "node-1"});
}

TEST_CASE("a name of this host is listened on at every address, localhost at its own") {
  char name[256] = {};
  REQUIRE(::gethostname(name, sizeof name - 1) == 0);
  auto options = calm_options();
  options.proven_by = token(secret);
  asio_world world(std::move(options));
  accepted_links accepted;
  const auto reached = [&](const std::string& listen, const std::string& by) {
    const auto listener = world.transport().listen({listen, 0}, accepted.acceptor());
    REQUIRE_MESSAGE(listener.has_value(), listener.error().what);
    return dial(world, {by, (*listener)->where().port}).has_value();
  };
  // Where it has no address, listening on it fails.
  if (dial(world, {name, 1}).error().what.find("refused") != std::string::npos)
    CHECK(reached(name, "127.0.0.3"));
  CHECK(reached("localhost", "127.0.0.1"));
  CHECK_FALSE(reached("localhost", "127.0.0.3"));
}

TEST_CASE("another token is refused, and both ends say so") {
  authenticating_master master(token(secret));
  master.turns_away(token(another), errc::refused, "its job token is another one than ours",
                    "its job token is another one than ours");
}

TEST_CASE("a token and certificates do not go together, and both ends say so") {
  temporary_folder folder;
  authority job(folder);
  SUBCASE("the master has the token") {
    authenticating_master master(token(secret));
    master.turns_away(job.issue("node", {"node-0"}), errc::refused,
                      "it takes no certificates; it may expect a job token",
                      "it proves no job token, and we have no certificates");
  }
  SUBCASE("the node has the token") {
    authenticating_master master(job.issue("master", {os::master_name}));
    master.turns_away(token(secret), errc::refused, "it expects certificates",
                      "it has a job token, and we expect certificates");
  }
}

TEST_CASE("an expired certificate is told at both ends") {
  temporary_folder folder;
  authority job(folder);
  authenticating_master master(job.issue("master", {os::master_name}));
  master.turns_away(job.issue("node", {"node-0"}, validity::expired), errc::refused,
                    "certificate expired", "certificate has expired");
}

TEST_CASE("what speaks no TLS, or an old one, hears nothing and is told of") {
  authenticating_master master(token(secret));
  SUBCASE("a frame of ours") {
    raw_peer plain(master.listener->where().port);
    REQUIRE(plain.send(on_wire(1, hello().any())));
    plain.read_to_end();
    CHECK_MESSAGE(eventually([&] { return master.log.tells("it does not speak TLS"); }),
                  master.log.all());
  }
  SUBCASE("HTTP") {
    raw_peer browser(master.listener->where().port);
    const std::string get = "GET / HTTP/1.1\r\nHost: master\r\n\r\n";
    REQUIRE(browser.send({get.begin(), get.end()}));
    browser.read_to_end();
    CHECK_MESSAGE(eventually([&] { return master.log.tells("it speaks HTTP"); }), master.log.all());
  }
  SUBCASE("TLS 1.2") {
    raw_tls_client(master.listener->where().port, "", "", {}, TLS1_2_VERSION);
    CHECK_MESSAGE(eventually([&] { return master.log.tells("older TLS than 1.3"); }),
                  master.log.all());
  }
  SUBCASE("TLS 1.3 that proves nothing") {
    CHECK(raw_tls_client(master.listener->where().port, "", "", on_wire(1, hello().any()),
                         TLS1_3_VERSION) != "taken");
    CHECK_MESSAGE(eventually([&] { return master.log.tells("it proves no job token"); }),
                  master.log.all());
  }
  CHECK(master.accepted.names().empty());
}

TEST_CASE("a program that is no master is told as that") {
  authenticating_master nobody(os::no_proof{});
  auto options = calm_options();
  options.proven_by = token(secret);
  asio_world node(std::move(options));
  // It answers a TLS hello with nothing that is TLS.
  const auto answer = dial(node, nobody.listener->where());
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what.find("TLS") != std::string::npos);
}

TEST_CASE("on one machine the token is made by the listener, and found by the dialler") {
  authenticating_master master(os::local_token{});
  CHECK(master.dialled_by(os::local_token{}));
  CHECK(master.dialled_by(os::local_token{}, "node-1", "localhost"));
  CHECK(master.accepted.names() == std::vector<std::string>{"node-0", "node-1"});
  // It is another one each time, and no file.
  const auto where = master.listener->where();
  master.listener.reset();
  auto again = master.world->transport().listen(where, master.accepted.acceptor());
  REQUIRE_MESSAGE(again.has_value(), again.error().what);
  master.listener = std::move(*again);
  CHECK(master.dialled_by(os::local_token{}, "node-2"));
}

TEST_CASE("a token of one machine serves each of its loopback addresses, and no other") {
  for (const std::string host : {"127.0.0.2", "localhost", "::1"}) {
    CAPTURE(host);
    auto options = calm_options();
    options.proven_by = os::local_token{};
    asio_world world(std::move(options));
    accepted_links accepted;
    const auto listener = world.transport().listen({host, 0}, accepted.acceptor());
    if (!listener && host == "::1") // a container may have no IPv6 at all
      continue;
    REQUIRE_MESSAGE(listener.has_value(), listener.error().what);
    auto answer = dial(world, (*listener)->where());
    CHECK_MESSAGE(answer.has_value(), answer.error().what);
  }
  auto options = calm_options();
  options.proven_by = os::local_token{};
  asio_world world(std::move(options));
  accepted_links accepted;
  const auto open = world.transport().listen({"*", 0}, accepted.acceptor());
  REQUIRE_FALSE(open);
  CHECK(open.error().what.find(
            "needs a job token, the same on each node: `actor-launcher --new-token` makes one") !=
        std::string::npos);
}

TEST_CASE("without a token given, a master that was given one is told apart from no master") {
  authenticating_master master(token(secret));
  const auto answer = master.dialled_by(os::local_token{});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::unavailable);
  CHECK_MESSAGE(answer.error().what.find("this end needs the same") != std::string::npos,
                answer.error().what);
  master.listener.reset();
  authenticating_master local(os::local_token{});
  local.turns_away(token(secret), errc::refused, "its job token is another one than ours",
                   "its job token is another one than ours");
}

TEST_CASE(
    "another user of this machine does not get the token, nor is that user's master believed") {
  if (::geteuid() != 0) {
    MESSAGE("only root can be another user for once");
    return;
  }
  SUBCASE("that user dials") {
    authenticating_master master(os::local_token{});
    child other({"dial", std::to_string(master.listener->where().port), "--user", "65534"});
    CHECK(other.line().find("belongs to user 0, and we are user 65534") != std::string::npos);
    CHECK(master.accepted.names().empty());
  }
  SUBCASE("that user listens") {
    child other({"listen", "--user", "65534"});
    const auto port = static_cast<std::uint16_t>(std::stoi(other.line()));
    auto options = calm_options();
    options.proven_by = os::local_token{};
    asio_world node(std::move(options));
    const auto answer = dial(node, {"127.0.0.1", port});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().what.find("belongs to user 65534, and we are user 0") !=
          std::string::npos);
  }
}

TEST_CASE("a token file is read only if no other user can read it") {
  temporary_folder folder;
  const auto path = folder.write("token", std::string(secret) + "\n");
  const auto error_text = [&path](mode_t mode) {
    ::chmod(path.c_str(), mode);
    const auto read = os::job_token::read(path);
    return read ? std::string() : read.error().what;
  };
  CHECK(error_text(0600).empty());
  CHECK(error_text(0400).empty());
  CHECK(error_text(0604).find("may be read or written by others (mode 0604)") != std::string::npos);
  CHECK(error_text(0602).find("by others") != std::string::npos);
  CHECK(error_text(0604).find(": chmod 600 it") != std::string::npos);
  // A Secret's volume in Kubernetes cannot be changed where it is mounted.
  ::mkdir(folder.file("..data").c_str(), 0755);
  CHECK(error_text(0644).find(": give the Secret's volume `defaultMode: 0400`") !=
        std::string::npos);
  // Root's files may be its group's: that is how Kubernetes gives secrets to other users.
  CHECK(error_text(0640).empty() == (::geteuid() == 0));
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    CHECK(error_text(0600).find("belongs to user 65534") != std::string::npos);
  }
  CHECK(os::job_token::read(folder.file("missing")).error().what.find("No such file") !=
        std::string::npos);
  CHECK(os::job_token::read("/dev/null").error().what.find("no regular file") != std::string::npos);
}

TEST_CASE("a token that could be guessed is none") {
  const auto error_text = [](const std::string& text) {
    const auto parsed = os::job_token::parse(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == errc::invalid);
    CHECK(parsed.error().what.find("actor-launcher --new-token") != std::string::npos);
    return parsed.error().what;
  };
  CHECK(os::job_token::parse(std::string(" \n") + secret + "\r\n")->secret() == secret);
  CHECK(error_text("").find("empty") != std::string::npos);
  CHECK(error_text(" \n").find("empty") != std::string::npos);
  CHECK(error_text("hunter2").find("7 characters") != std::string::npos);
  CHECK(error_text("hunter2").find("hunter2") == std::string::npos);
  CHECK(error_text(std::string(2'000, 'x')).find("more than 1024") != std::string::npos);
  CHECK(error_text(std::string(secret) + " " + secret).find("one word") != std::string::npos);
  CHECK(error_text(std::string(secret) + '\0').find("one word") != std::string::npos);
  CHECK(os::job_token::fresh().secret() != os::job_token::fresh().secret());
  CHECK(os::job_token::parse(os::job_token::fresh().secret()));
}

TEST_CASE("the key of a token is the same in every release") {
  // HKDF-SHA256 as Python's hmac computes it.
  CHECK(fmt::format("{:02x}", fmt::join(os::job_token::parse(secret)->key(), "")) ==
        "39963085c437556ba7d46032fbb7e516c27a891096b6defb20945bb974cd6e8f");
}

TEST_CASE("certificates that have changed are used for new connections") {
  temporary_folder folder;
  authority first(folder);
  const auto files = first.issue("master", {os::master_name});
  authenticating_master master(files);
  const auto node = first.issue("node", {"node-0"});
  CHECK(master.dialled_by(node));
  // Everything is renewed, the authority too.
  authority second(folder, "second");
  const auto fresh = second.issue("fresh", {os::master_name});
  // Half of it is there: the old ones go on to serve.
  std::filesystem::rename(fresh.key, files.key);
  CHECK(master.dialled_by(node, "node-0"));
  CHECK_MESSAGE(master.log.tells("the certificates have changed and are not used"),
                master.log.all());
  std::filesystem::rename(fresh.certificate, files.certificate);
  std::filesystem::rename(second.certificate_file(), files.authority);
  auto renewed = second.issue("renewed", {"node-0"});
  renewed.authority = files.authority;
  CHECK(master.dialled_by(renewed));
  CHECK(master.log.tells("new connections use the changed certificates"));
}

TEST_CASE("port scanners and slow handshakes do not disturb a link") {
  auto options = calm_options();
  options.link.handshake_within = 500ms;
  options.unproven_max = 64;
  authenticating_master master(token(secret), "127.0.0.1", options);
  auto of_node = calm_options();
  of_node.proven_by = token(secret);
  asio_world world(std::move(of_node));
  owner node(std::move(*dial(world, master.listener->where())));
  REQUIRE(eventually([&] { return master.accepted.names().size() == 1; }));
  owner other_end(master.accepted.link(0));
  node.open();
  other_end.open();
  const auto port = master.listener->where().port;
  std::vector<raw_peer> slow;
  for (std::size_t i = 0; i < 300; ++i) {
    raw_peer peer(port);
    switch (i % 4) {
    case 0: // a scanner: hangs up
      continue;
    case 1: // a TLS hello that promises more than it holds
      peer.send({0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc});
      break;
    case 2: // a frame of ours that was not asked for
      peer.send(on_wire(1, hello("intruder").any()));
      break;
    default: // nothing at all
      break;
    }
    slow.push_back(std::move(peer));
    if (i % 10 == 0) {
      const auto before = other_end.numbers().size();
      REQUIRE(node.link().send(numbered(before + 1)));
      CHECK(eventually([&] { return other_end.numbers().size() == before + 1; }));
    }
  }
  for (auto& peer : slow)
    peer.read_to_end();
  CHECK(node.reasons().empty());
  CHECK(other_end.reasons().empty());
  CHECK(master.accepted.names() == std::vector<std::string>{"node-0"});
}
