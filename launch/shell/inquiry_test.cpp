#include "actors/tree_report.hpp"
#include "launch/shell/masters.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace troupe;
using namespace troupe::launch;

namespace {

/// What listens somewhere.
enum class place { nothing, master, replication_target, master_that_goes };

/// Answers at once, in the caller's thread.
class scripted_link final : public ports::connection {
 public:
  explicit scripted_link(place what) : what_(what) {}

  void open(ports::connection_events events) override {
    events_ = std::move(events);
    messages::author author("master");
    if (what_ == place::replication_target)
      events_.on_message(
          author.write<messages::Refused>({}, [](auto b) { b.setReason("only sources"); }).any());
    else
      events_.on_message(
          author.write<messages::Welcome>({}, [](auto b) { b.setJob("bert"); }).any());
  }
  result<void> send(messages::any_msg m) override {
    if (what_ == place::master_that_goes) {
      events_.on_closed({ports::link_end::closed, "reset by peer"});
      return {};
    }
    const auto node = std::string(m.as<messages::TreeRequest>().read()->getNode().cStr());
    const sup::node_report tree{"master", "rest_for_one", "running", "asked about '" + node + "'"};
    const auto answer = messages::author("master").answer<messages::TreeReport>(
        m.envelope(), [&tree](auto b) { actors::write_tree(tree, b.initRoots(1)[0]); });
    // An answer to another question comes first.
    events_.on_message(messages::with_correlation(answer, 1000).any());
    events_.on_message(answer.any());
    return {};
  }
  void taken() override {}
  void close(std::string) override {}
  std::string peer() const override { return "scripted"; }

 private:
  const place what_;
  ports::connection_events events_;
};

class scripted_transport final : public ports::transport {
 public:
  explicit scripted_transport(std::map<ports::endpoint, place> places)
      : places_(std::move(places)) {}

  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint&, acceptor) override {
    return failure(errc::refused, "nothing listens here");
  }
  void dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
            dialled done) override {
    CHECK(hello.read()->getRole() == messages::Hello::Role::SHELL);
    const auto found = places_.find(where);
    if (found == places_.end() || found->second == place::nothing)
      done(failure(errc::unavailable, "connection refused"));
    else
      done(std::make_shared<scripted_link>(found->second));
  }

 private:
  const std::map<ports::endpoint, place> places_;
};

const ports::endpoint a{"127.0.0.1", 1}, b{"127.0.0.1", 2}, c{"127.0.0.1", 3};

inquiry asking(const ports::endpoint& where, std::map<ports::endpoint, place> places) {
  return {std::make_shared<scripted_transport>(std::move(places)), where,
          std::make_shared<wake_up>(), [] { return false; }};
}

std::string found(const std::map<ports::endpoint, place>& places,
                  const std::vector<ports::endpoint>& possible) {
  const auto master = find_master({std::make_shared<scripted_transport>(places)}, possible);
  return master ? ports::to_string(master->where) : master.error().what;
}

} // namespace

TEST_CASE("inquiry: a master answers, again and again over one link") {
  auto master = asking(a, {{a, place::master}});
  for (const std::string node : {"", "node-1"}) {
    const auto tree = master.ask_tree(node);
    REQUIRE(tree);
    CHECK(tree->phase == "asked about '" + node + "'");
  }
}

TEST_CASE("inquiry: what does not answer gives its reason, and is dialled again") {
  CHECK(asking(a, {}).ask_tree("").error().what == "connection refused");
  CHECK(asking(a, {{a, place::replication_target}}).ask_tree("").error().what == "only sources");
  auto goes = asking(a, {{a, place::master_that_goes}});
  for (int i = 0; i < 2; ++i)
    CHECK(goes.ask_tree("").error().what == "reset by peer");
}

TEST_CASE("inquiry: nothing is waited for once the person has enough") {
  inquiry master(std::make_shared<scripted_transport>(
                     std::map<ports::endpoint, place>{{a, place::master_that_goes}}),
                 a, std::make_shared<wake_up>(), [] { return true; });
  CHECK_FALSE(master.ask_tree(""));
}

TEST_CASE("find: exactly one master is taken, whatever else listens") {
  CHECK(found({{a, place::replication_target}, {b, place::master}}, {a, b, c}) == "127.0.0.1:2");
}

TEST_CASE("find: none, or several: one line that says what to give") {
  CHECK(found({}, {}) == "no master of this user's jobs was found on this machine; --master "
                         "HOST:PORT (or TROUPE_MASTER_ADDR) says which one is meant");
  CHECK(found({{a, place::replication_target}}, {a, b, c}) ==
        "no master of this user's jobs was found on this machine; --master HOST:PORT (or "
        "TROUPE_MASTER_ADDR) says which one is meant (tried 127.0.0.1:1: only sources; "
        "127.0.0.1:2: connection refused)");
  CHECK(found({{a, place::master}, {b, place::master}}, {a, b}) ==
        "2 jobs of this user run on this machine: bert at 127.0.0.1:1, bert at 127.0.0.1:2; "
        "--master HOST:PORT (or TROUPE_MASTER_ADDR) says which one is meant");
}
