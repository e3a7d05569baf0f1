#include "tests/fakes/bulk_links.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/base/rate_limiter.hpp"
#include "runtime/link/bulk_peers.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::testing {

using fake_bulk_things = std::deque<std::function<void()>>;

/// One link; its ends are 0, which has dialled, and 1.
struct fake_bulk_pair {
  std::array<std::string, 2> nodes;
  std::array<std::optional<ports::connection_events>, 2> owners;
  /// For an end that is not open yet.
  std::array<std::deque<messages::any_msg>, 2> early;
  std::array<std::optional<ports::link_ending>, 2> ended;
  std::shared_ptr<fake_bulk_things> todo;
  std::shared_ptr<std::size_t> delivered;

  void opens(std::size_t at, ports::connection_events events) {
    for (auto& m : std::exchange(early[at], {})) {
      ++*delivered;
      events.on_message(std::move(m));
    }
    if (ended[at])
      events.on_closed(*ended[at]);
    else
      owners[at] = std::move(events);
  }
  void arrives(std::size_t at, messages::any_msg m) {
    if (ended[at])
      return;
    if (!owners[at])
      return early[at].push_back(std::move(m));
    ++*delivered;
    owners[at]->on_message(std::move(m));
  }
  void end(std::size_t at, const std::string& reason) {
    if (ended[at])
      return;
    ended[at] = ports::link_ending{ports::link_end::closed, reason};
    if (owners[at])
      std::exchange(owners[at], std::nullopt)->on_closed(*ended[at]);
  }
};

/// What others know of a node.
struct fake_bulk_node {
  std::map<ports::bulk_purpose, ports::transport::acceptor> acceptors;
  std::optional<rate_limiter> rate{std::in_place, 0, limits::bulk_burst};
  bool is_cut = false;
};

namespace {

constexpr const char* job_name = "job";

class end_of_link final : public ports::connection {
 public:
  end_of_link(std::shared_ptr<fake_bulk_pair> link, std::size_t which)
      : link_(std::move(link)), which_(which) {}
  ~end_of_link() override { close("its owner let go of the link"); }

  void open(ports::connection_events events) override {
    link_->todo->push_back([link = link_, at = which_, events = std::move(events)]() mutable {
      link->opens(at, std::move(events));
    });
  }
  result<void> send(messages::any_msg m) override {
    if (closes_ || link_->ended[which_])
      return failure(errc::closed, "the link is gone");
    link_->todo->push_back(
        [link = link_, to = 1 - which_, m = std::move(m)] { link->arrives(to, m); });
    return {};
  }
  void taken() override {}
  void close(std::string reason) override {
    if (std::exchange(closes_, true) || link_->ended[which_])
      return;
    link_->todo->push_back([link = link_, at = which_, reason = std::move(reason)] {
      link->end(at, reason);
      link->end(1 - at, "the peer closed the connection");
    });
  }
  std::string peer() const override { return link_->nodes[1 - which_]; }

 private:
  const std::shared_ptr<fake_bulk_pair> link_;
  const std::size_t which_;
  bool closes_ = false;
};

} // namespace

struct fake_bulk_network::parts {
  std::shared_ptr<fake_bulk_things> todo = std::make_shared<fake_bulk_things>();
  std::shared_ptr<std::size_t> delivered = std::make_shared<std::size_t>(0);
  std::map<std::string, std::shared_ptr<fake_bulk_node>> nodes;
  std::map<std::string, std::shared_ptr<ports::bulk_links>> handed_out;
  std::vector<std::weak_ptr<fake_bulk_pair>> links;

  fake_bulk_node& at(const std::string& name) {
    auto& node = nodes[name];
    if (!node)
      node = std::make_shared<fake_bulk_node>();
    return *node;
  }

  void dial(const std::string& from, const ports::endpoint& where, ports::bulk_purpose purpose,
            const ports::transport::dialled& done) {
    const auto to = nodes.find(where.host);
    if (to == nodes.end() || where.port != fake_bulk_network::port)
      return done(failure(errc::closed, "no process listens at " + ports::to_string(where)));
    if (to->second->is_cut || at(from).is_cut)
      return done(failure(errc::unavailable, "no answer from " + ports::to_string(where)));
    auto link = std::make_shared<fake_bulk_pair>();
    link->nodes = {from, where.host};
    link->todo = todo;
    link->delivered = delivered;
    links.push_back(link);
    done(std::make_shared<end_of_link>(link, 0));
    meet(*to->second, {std::make_shared<end_of_link>(link, 1), hello(from, purpose)}, purpose);
  }

  static messages::msg<messages::Hello> hello(const std::string& from,
                                              ports::bulk_purpose purpose) {
    messages::author as(from + "/bulk");
    return link::bulk_hello(as, job_name, from, purpose);
  }

  static void meet(const fake_bulk_node& at, ports::peer p, ports::bulk_purpose purpose) {
    const auto found = at.acceptors.find(purpose);
    // One that replaces itself is still running.
    const auto accept = found == at.acceptors.end() ? ports::transport::acceptor{} : found->second;
    auto hello = p.hello.read();
    if (const auto why = link::bulk_refusal(*hello, {job_name, static_cast<bool>(accept), 0, 1}))
      return link::turn_away(p, "bulk_exchange", *why);
    accept(std::move(p));
  }
};

namespace {

class fake_node_links final : public ports::bulk_links {
 public:
  using dialling = std::function<void(const ports::endpoint&, ports::bulk_purpose,
                                      const ports::transport::dialled&)>;
  fake_node_links(std::string name, std::shared_ptr<fake_bulk_node> node,
                  std::shared_ptr<fake_bulk_things> todo, dialling dial)
      : name_(std::move(name)), node_(std::move(node)), todo_(std::move(todo)),
        dial_(std::move(dial)) {}

  ports::endpoint where() const override { return {name_, fake_bulk_network::port}; }
  void serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) override {
    std::swap(node_->acceptors[purpose], accept);
  }
  void dial(const ports::endpoint& where, ports::bulk_purpose purpose,
            ports::transport::dialled done) override {
    todo_->push_back(
        [dial = dial_, where, purpose, done = std::move(done)] { dial(where, purpose, done); });
  }
  instant may_send(instant now, std::uint64_t bytes) const override {
    return node_->rate->may_send(now, bytes);
  }
  void sent(instant now, std::uint64_t bytes) override { node_->rate->sent(now, bytes); }

 private:
  const std::string name_;
  const std::shared_ptr<fake_bulk_node> node_;
  const std::shared_ptr<fake_bulk_things> todo_;
  const dialling dial_;
};

} // namespace

fake_bulk_network::fake_bulk_network() : parts_(std::make_shared<parts>()) {}

fake_bulk_network::~fake_bulk_network() {
  // Owners of links may still let go of them; nothing happens any more. Acceptors and what waits
  // may own what owns the links.
  for (const auto& [name, node] : parts_->nodes)
    node->acceptors.clear();
  parts_->todo->clear();
}

std::shared_ptr<ports::bulk_links> fake_bulk_network::node(const std::string& name) {
  auto& links = parts_->handed_out[name];
  (void)parts_->at(name);
  if (!links)
    links = std::make_shared<fake_node_links>(
        name, parts_->nodes[name], parts_->todo,
        [all = std::weak_ptr<parts>(parts_), name](const ports::endpoint& where,
                                                   ports::bulk_purpose purpose,
                                                   const ports::transport::dialled& done) {
          if (const auto living = all.lock())
            living->dial(name, where, purpose, done);
        });
  return links;
}

bool fake_bulk_network::step() {
  if (parts_->todo->empty())
    return false;
  const auto next = std::move(parts_->todo->front());
  parts_->todo->pop_front();
  next();
  return true;
}

std::size_t fake_bulk_network::waiting() const {
  return parts_->todo->size();
}

void fake_bulk_network::cut(const std::string& name) {
  parts_->at(name).is_cut = true;
  for (const auto& weak : parts_->links)
    if (const auto link = weak.lock(); link && (link->nodes[0] == name || link->nodes[1] == name))
      for (const std::size_t at : {0u, 1u})
        link->end(at, "the connection broke");
}

void fake_bulk_network::mend(const std::string& name) {
  parts_->at(name).is_cut = false;
}

void fake_bulk_network::set_rate(const std::string& name, std::uint64_t bytes_per_second) {
  parts_->at(name).rate.emplace(bytes_per_second, limits::bulk_burst);
}

std::size_t fake_bulk_network::delivered() const {
  return *parts_->delivered;
}

} // namespace troupe::testing
