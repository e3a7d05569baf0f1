// Very many nodes before one real master: each is a link of its own, over TCP and TLS, that says
// and answers what a node supervisor does while nothing fails. All of them are this process.
//
//     node_crowd PORT NODES
//
// Prints, in ms since the first of them dialled, when the last one was welcome, had got its seat,
// and was told to start. At a byte on its standard input a rack is lost: 32 nodes end their links
// at once. Prints, in ms since then, when the others were told to start again. When its standard
// input is closed it says how many generations followed the first, and ends.

#include "messages/kinds.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "runtime/os/net/descriptor_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

using namespace troupe;
using namespace troupe::messages;
using clock_type = std::chrono::steady_clock;

namespace {

/// How far all of them are.
class stage {
 public:
  stage(const char* name, std::size_t of) : name_(name), missing_(of) {}

  void reached(clock_type::time_point began) {
    if (--missing_ == 0) {
      fmt::print("{} {:.0f}\n", name_, milliseconds_of(clock_type::now() - began));
      std::fflush(stdout);
    }
  }

 private:
  const char* name_;
  std::atomic<std::size_t> missing_;
};

/// A master takes very many connections from one address for a flood, so the crowd has more.
constexpr std::size_t nodes_of_a_machine = 20;
/// On machines of their own all speak as soon as they are connected. Here one processor speaks for
/// all, and a master drops connections that stay silent where others wait.
constexpr std::size_t dials_at_once = 200;
/// For the same reason, and as scale.py tells the master: one processor speaks for all.
constexpr auto lease = 120s;
constexpr std::size_t rack = 32;

struct crowd {
  crowd(std::vector<std::shared_ptr<os::asio_transport>> over, std::uint16_t master_port,
        std::size_t nodes)
      : machines(std::move(over)), port(master_port), links(nodes), welcome("welcome", nodes),
        seat("seat", nodes), start("start", nodes), again("again", nodes - rack) {}

  /// Each dials from an address of its own, for nodes_of_a_machine nodes.
  std::vector<std::shared_ptr<os::asio_transport>> machines;
  std::uint16_t port;
  std::atomic<std::size_t> dialled{0};
  std::vector<ports::connection_ptr> links;
  clock_type::time_point began = clock_type::now();
  clock_type::time_point lost{};
  std::atomic<std::uint64_t> first{0}, newest{0}; ///< generations
  stage welcome, seat, start, again;
};

std::string name_of(std::size_t node) {
  return fmt::format("node-{:05}", node);
}

any_msg hello(std::size_t node) {
  return build<Hello>({name_of(node) + "/uplink"},
                      [node](auto b) {
                        b.setJob("none");
                        b.setNode(name_of(node));
                        b.setIncarnation(node + 1);
                        b.setAddress("127.0.0.1");
                        b.setSlots(8);
                        b.setWantedRank(-1);
                        b.setRevision(protocol_revision);
                        b.initState();
                      })
      .any();
}

void write_row(TreeNode::Builder row, const char* name, const char* kind) {
  row.setName(name);
  row.setKind(kind);
  row.setState("running");
  row.setUptimeMs(60'000);
}

/// What a node supervisor with eight ranks answers to a shell.
any_msg tree(const stamp& from) {
  return build<TreeReport>(from,
                           [](auto b) {
                             auto root = b.initRoots(1)[0];
                             write_row(root, "node_supervisor", "one_for_one");
                             auto parts = root.initChildren(3);
                             write_row(parts[0], "training", "rest_for_one");
                             write_row(parts[1], "checkpoint_saver", "one_for_one");
                             write_row(parts[2], "uplink", "worker");
                             auto training = parts[0].initChildren(2);
                             write_row(training[0], "agent", "worker");
                             write_row(training[1], "worker_group", "dynamic");
                             auto saver = parts[1].initChildren(2);
                             write_row(saver[0], "persister", "worker");
                             write_row(saver[1], "replicator", "worker");
                             auto generation = training[1].initChildren(1)[0];
                             write_row(generation, "generation 1", "one_fate");
                             auto ranks = generation.initChildren(8);
                             for (unsigned i = 0; i < ranks.size(); ++i) {
                               write_row(ranks[i], fmt::format("rank {}", i).c_str(), "worker");
                               ranks[i].setPhase(
                                   fmt::format("rank {} runs as pid {}", i, 4711 + i));
                             }
                           })
      .any();
}

void hear(crowd& all, std::size_t node, const any_msg& m) {
  const auto& link = all.links[node];
  link->taken();
  const stamp from{name_of(node) + "/agent", {}, m.envelope().about};
  result<void> said;
  if (m.is<Refused>()) {
    fmt::print(stderr, "{}: {}\n", name_of(node), m.as<Refused>().read()->getReason().cStr());
    std::_Exit(1);
  } else if (m.is<Welcome>()) {
    all.welcome.reached(all.began);
  } else if (m.is<Prepare>()) {
    all.newest = std::max(all.newest.load(), m.envelope().about.value);
    if (all.lost == clock_type::time_point{}) {
      all.first = all.newest.load();
      all.seat.reached(all.began);
    }
    said = link->send(build<Prepared>(from, [node](auto b) {
                        b.setNode(name_of(node));
                        b.setStorePort(4'000);
                        b.setStoreHosted(true);
                      }).any());
  } else if (m.is<Start>()) {
    if (m.envelope().about.value > all.first)
      all.again.reached(all.lost);
    else
      all.start.reached(all.began);
    said = link->send(build<Running>(from, [node](auto b) { b.setNode(name_of(node)); }).any());
  } else if (m.is<Stop>()) {
    said = link->send(build<Stopped>(from, [node](auto b) { b.setNode(name_of(node)); }).any());
  } else if (m.is<TreeRequest>()) {
    said = link->send(tree({name_of(node) + "/uplink", {}, {}, 1, m.envelope().correlation}));
  }
  if (!said)
    fmt::print(stderr, "{}: {}\n", name_of(node), said.error().what);
}

void dial_next(crowd& all);

void dial(crowd& all, std::size_t node) {
  all.machines[node / nodes_of_a_machine]->dial(
      {"127.0.0.1", all.port}, hello(node).as<Hello>(),
      [&all, node](result<ports::connection_ptr> link) {
        if (!link && link.error().code == errc::unavailable)
          return dial(all, node);
        dial_next(all);
        if (!link) {
          fmt::print(stderr, "{}: {}\n", name_of(node), link.error().what);
          std::_Exit(1);
        }
        all.links[node] = std::move(*link);
        all.links[node]->open({[&all, node](const any_msg& m) { hear(all, node, m); },
                               [node](const ports::link_ending& end) {
                                 fmt::print(stderr, "{}: {}\n", name_of(node), end.reason);
                               }});
      });
}

void dial_next(crowd& all) {
  if (const auto node = all.dialled++; node < all.links.size())
    dial(all, node);
}

void lose_rack(crowd& all) {
  all.lost = clock_type::now();
  for (std::size_t i = all.links.size() - rack; i < all.links.size(); ++i)
    all.links[i]->close("its rack has no power");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3)
    return 64;
  const std::size_t nodes = std::stoul(argv[2]);
  if (nodes <= rack)
    return 64;
  const auto files = os::raise_descriptor_limit(nodes + 100);
  if (!files || *files < nodes + 100) {
    fmt::print(stderr, "not enough file descriptors for {} links\n", nodes);
    return 1;
  }
  os::io_thread io;
  os::transport_options options;
  options.proven_by = os::local_token{};
  // All of them share two processors with their master: on machines of their own none would wait.
  options.link = link::for_peers(nodes, lease);
  options.link.dial_within = options.link.handshake_within = 60s;
  std::vector<std::shared_ptr<os::asio_transport>> machines;
  for (std::size_t i = 0; i * nodes_of_a_machine < nodes; ++i) {
    options.dial_from = fmt::format("127.1.{}.{}", i / 250, i % 250 + 1);
    auto transport = os::asio_transport::make(io, options);
    if (!transport) {
      fmt::print(stderr, "{}\n", transport.error().what);
      return 1;
    }
    machines.push_back(std::move(*transport));
  }
  crowd all(std::move(machines), static_cast<std::uint16_t>(std::stoul(argv[1])), nodes);
  for (std::size_t i = 0; i < dials_at_once; ++i)
    dial_next(all);
  char asked = 0;
  if (::read(STDIN_FILENO, &asked, 1) > 0) {
    os::call_on(io, [&all] { lose_rack(all); });
    while (::read(STDIN_FILENO, &asked, 1) > 0) {
    }
  }
  fmt::print("generations {}\n", all.newest - all.first);
  std::fflush(stdout);
  std::_Exit(0);
}
