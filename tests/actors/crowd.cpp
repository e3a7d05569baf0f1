// How long a master takes to make one world of very many nodes: its whole tree on a simulated
// engine, in one thread; the nodes are their ends of the links. No network: what is measured is
// what the master decides, writes and hands to its links.

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "tests/actors/master_stage.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <set>

#include <sys/resource.h>

namespace {

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;
using real_clock = std::chrono::steady_clock;

double ms_since(real_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(real_clock::now() - start).count();
}

double memory_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

struct crowd {
  explicit crowd(std::uint32_t count) : stage(count) {
    for (std::uint32_t i = 0; i < count; ++i)
      names.push_back(fmt::format("n{:05}", i));
    for (const auto& name : names)
      hellos.push_back(hello(name));
    stage.begin();
  }

  void run() {
    while (stage.engine.run_first())
      ;
  }

  /// What each heard since the last time: so many messages. Returns the last of each.
  std::vector<messages::any_msg> hear(std::size_t count) {
    std::vector<messages::any_msg> last;
    for (const auto& link : links) {
      auto heard = link->take_sent();
      invariant(heard.size() == count, "a node heard more or less than it should");
      last.push_back(heard.back());
    }
    return last;
  }

  master_stage stage;
  std::vector<node_name> names;
  std::vector<messages::msg<messages::Hello>> hellos;
  std::vector<troupe::testing::fake_link_ptr> links;
};

void measure(std::uint32_t count) {
  crowd c(count);
  const auto before = memory_mib();
  auto start = real_clock::now();
  for (const auto& h : c.hellos)
    c.links.push_back(c.stage.transport->knock(h));
  c.run();
  const auto joined = ms_since(start);
  const auto seats = c.hear(2); // Welcome, Prepare
  const auto seat_bytes = seats.back().size_bytes();
  invariant(seat_bytes < 1'000, "what a node is told of a world grows with the world");

  start = real_clock::now();
  for (std::uint32_t i = 0; i < count; ++i) {
    agent_core agent({c.names[i], 2}, messages::author("agent"));
    (void)agent.prepare(dawn, seats[i].as<messages::Prepare>());
  }
  const auto read = ms_since(start);

  std::vector<messages::any_msg> answers;
  for (const auto& name : c.names)
    answers.push_back(prepared(name, 1, 4000).any());
  start = real_clock::now();
  for (std::uint32_t i = 0; i < count; ++i)
    c.links[i]->arrives(answers[i]);
  c.run();
  const auto started = ms_since(start);
  const auto owners = c.hear(2); // Start, RankOwners
  const auto owners_bytes = owners.front().size_bytes();
  for (const auto& m : owners)
    invariant(m.words().begin() == owners.front().words().begin(),
              "what all nodes are told is built more than once");

  start = real_clock::now();
  c.links.back()->breaks();
  c.run();
  c.stage.pass(c.stage.options.membership.return_within);
  const auto lost = ms_since(start);
  fmt::print(
      "{} nodes: {:.0f} ms from the first hello to the last Prepare (a seat of {} bytes), "
      "{:.0f} ms from the first Prepared to the last Start (and the "
      "owners of ranks, {:.0f} KiB, built once), {:.0f} ms to stop all after a loss; each node "
      "reads its seat in {:.3f} ms; {:.0f} MiB ({:.0f} before "
      "they came)\n",
      count, joined, seat_bytes, started, static_cast<double>(owners_bytes) / 1024, lost,
      read / count, memory_mib(), before);
}

} // namespace

int main(int argc, char** argv) {
  std::uint32_t nodes = 10'000;
  CLI::App app("How long a master takes to make one world of very many nodes.");
  app.add_option("--nodes", nodes, "how many");
  CLI11_PARSE(app, argc, argv);
  measure(nodes);
}
