#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/merged_message.hpp"
#include "diag/stacks/process_message.hpp"
#include "diag/stacks/stack_files.hpp"
#include "diag/stacks/testing/some_stacks.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::diag;
using namespace troupe::diag::testing;
using messages::MergedStacks;
using messages::ProcessStacks;

namespace {

messages::msg<ProcessStacks> said(const process_stacks& p) {
  return messages::local<ProcessStacks>("test", [&p](auto body) { write_process(p, body); });
}

messages::msg<MergedStacks> said(const merged_stacks& m) {
  return messages::local<MergedStacks>("test", [&m](auto body) { write_merged(m, body); });
}

/// What is said of a process that `change` has damaged.
template<class Change>
std::string objection_to(Change change) {
  const auto m = messages::local<ProcessStacks>("test", [&change](auto body) {
    write_process(process(1, 4, {"main", "work"}), body);
    change(body);
  });
  const auto read = read_process(*m.read());
  merged_stacks into;
  CHECK(add_process(into, *m.read()).has_value() == read.has_value());
  if (!read)
    CHECK(to_json(into) == to_json(merged_stacks{}));
  return read ? "" : read.error().what;
}

template<class Change>
std::string objection_to_merged(Change change) {
  merged_stacks stacks;
  stacks.add(process(1, 4, {"main", "work"}));
  const auto m = messages::local<MergedStacks>("test", [&](auto body) {
    write_merged(stacks, body);
    change(body);
  });
  const auto read = read_merged(*m.read());
  return read ? "" : read.error().what;
}

} // namespace

TEST_CASE("what the kernel says of a process comes with its stacks") {
  auto p = process(1, 4, {"main", "work"});
  p.facts = {"the file system of /data is full"};
  p.moves = motion::spins;
  p.threads[0].waits_in = "futex_do_wait (futex)";
  const auto read = read_process(*said(p).read());
  REQUIRE(read);
  CHECK(read->facts == p.facts);
  CHECK(read->moves == motion::spins);
  CHECK(read->threads[0].waits_in == p.threads[0].waits_in);
  CHECK(objection_to([](ProcessStacks::Builder body) { body.initFacts(257); }) != "");
}

TEST_CASE("a kind of motion that a later version knows is none") {
  const auto m = messages::local<ProcessStacks>("test", [](auto body) { body.setMotion(200); });
  const auto read = read_process(*m.read());
  REQUIRE(read);
  CHECK(read->moves == motion::unknown);
}

TEST_CASE("a process comes back from a message as it was") {
  random_source chance(3);
  for (int round = 0; round < 200; ++round) {
    const auto p = some_process(chance, 3, 8);
    const auto m = said(p);
    const auto back = read_process(*m.read());
    REQUIRE(back);
    CHECK(back->role == p.role);
    CHECK(back->pid == p.pid);
    CHECK(back->python_version == p.python_version);
    CHECK(back->missing == p.missing);
    REQUIRE(back->threads.size() == p.threads.size());
    for (std::size_t i = 0; i < p.threads.size(); ++i) {
      CHECK(back->threads[i].native == p.threads[i].native);
      CHECK(back->threads[i].python == p.threads[i].python);
      CHECK(back->threads[i].state == p.threads[i].state);
      CHECK(back->threads[i].holds_gil == p.threads[i].holds_gil);
    }
    merged_stacks by_message, by_hand;
    REQUIRE(add_process(by_message, *m.read()));
    by_hand.add(p);
    CHECK(to_json(by_message) == to_json(by_hand));
  }
}

TEST_CASE("merged stacks come back from a message as they were") {
  random_source chance(5);
  for (int round = 0; round < 200; ++round) {
    merged_stacks stacks;
    for (std::uint32_t rank = 0; rank < 6; ++rank)
      stacks.add(some_process(chance, rank, 8));
    const auto back = read_merged(*said(stacks).read());
    REQUIRE(back);
    CHECK(to_json(*back) == to_json(stacks));
  }
}

TEST_CASE("a name may have any bytes") {
  const std::string odd("a\0b\xff", 4), other("a\0c\xff", 4);
  auto p = process(0, 1, {"main", odd, other});
  p.role = odd;
  p.missing = {odd};
  const auto back = read_process(*said(p).read());
  REQUIRE(back);
  CHECK(back->threads.front().python == p.threads.front().python);
  CHECK(back->role == odd);
  CHECK(back->missing == p.missing);
  merged_stacks stacks;
  stacks.add(p);
  const auto merged = read_merged(*said(stacks).read());
  REQUIRE(merged);
  CHECK(to_json(*merged) == to_json(stacks));
}

TEST_CASE("more than a message holds is left out from the innermost on, and counted") {
  merged_stacks stacks;
  for (std::uint32_t rank = 0; rank < 3'000; ++rank) {
    const auto name = std::to_string(rank) + std::string(1'000, 'x');
    stacks.add(process(rank, 3'000, {"main", "a" + name, "b" + name}));
  }
  const auto m = said(stacks);
  CHECK(m.any().size_bytes() <= limits::frame_max);
  CHECK(messages::admit(m.any().words().begin(), m.any().size_bytes()).has_value());
  const auto back = read_merged(*m.read());
  REQUIRE(back);
  CHECK(back->python.nodes()[1].threads == 3'000);
  CHECK(back->python.nodes().size() < stacks.python.nodes().size());
  std::uint64_t ended = 0;
  for (const auto& n : back->python.nodes())
    ended += n.ended;
  CHECK(ended == 2 * 3'000); // each thread's stack and its state
  CHECK(back->python.was_left_out().full > 0);
}

TEST_CASE("a process larger than a dump says what it leaves out") {
  auto p = process(0, 1, {"main"});
  p.threads.resize(limits::process_threads_max + 5, p.threads.front());
  p.threads[1].python = stack(std::vector<std::string>(limits::process_frames_max, "again"));
  p.missing.assign(2 * limits::missing_lines_max, std::string(3'000, 'm'));
  const auto m = said(p);
  const auto back = read_process(*m.read());
  REQUIRE(back);
  CHECK(back->threads.size() == limits::process_threads_max);
  CHECK(back->threads[0].python == p.threads[0].python);
  CHECK(back->threads[1].python.empty());
  CHECK(back->missing.size() == limits::missing_lines_max);
  CHECK(messages::admit(m.any().words().begin(), m.any().size_bytes()).has_value());
}

TEST_CASE("a damaged process is refused as a whole, with one line") {
  CHECK(objection_to([](auto) {}).empty());
  CHECK(objection_to([](auto b) { b.setRank(4); }) == "rank 4 of 4 cannot be");
  CHECK(objection_to([](auto b) { b.getFunctions().set(0, 99); }) ==
        "its list of frames is damaged");
  CHECK(objection_to([](auto b) { b.initLines(7); }) == "its list of frames is damaged");
  CHECK(objection_to([](auto b) { b.getThreads()[0].getPython().set(0, 2); }) ==
        "a stack of it is damaged");
}

TEST_CASE("damaged merged stacks are refused, with one line") {
  CHECK(objection_to_merged([](auto) {}).empty());
  CHECK(objection_to_merged([](auto b) { b.getPython().getParents().set(0, 1); }) ==
        "Python stacks: its list of nodes is damaged");
  CHECK(objection_to_merged([](auto b) { b.getPython().getFrames().set(1, 50); }) ==
        "Python stacks: its list of nodes is damaged");
  CHECK(objection_to_merged([](auto b) { b.getPython().getRunCounts().set(2, 9); }) ==
        "Python stacks: its list of nodes is damaged");
  CHECK(objection_to_merged([](auto b) { b.getPython().getLineCounts().set(2, 5); }) ==
        "Python stacks: its list of nodes is damaged");
  CHECK(objection_to_merged([](auto b) { b.getPython().getSources().set(0, 50); }) ==
        "Python stacks: its list of frames is damaged");
  CHECK(objection_to_merged([](auto b) { b.getRanks().set(1, 0xffff'ffff); }) ==
        "its list of ranks is damaged");
}

TEST_CASE("a dump file: its name, its processes, and what is said of a bad one") {
  CHECK(dump_file_name({3, 8}) == "rank-00003-of-00008.stacks");
  CHECK(dump_named("rank-00003-of-00008.stacks")->rank == 3);
  CHECK(dump_named("rank-123456-of-200000.stacks")->world_size == 200'000);
  for (const char* name : {"rank-8-of-8.stacks", "rank-1-of-2.stacks.part", "rank-x-of-2.stacks",
                           "rank--1-of-2.stacks", "rank-1-of-99999999999.stacks"})
    CHECK_FALSE(dump_named(name));

  auto loader = process(3, 8, {"worker_loop"});
  loader.role = "data loader worker 0";
  const auto bytes = dump_of({process(3, 8, {"main"}), loader});
  const auto error_of = [&](std::string_view part, std::uint32_t rank, merged_stacks& into) {
    const auto added = add_dump(into, part, {rank, 8});
    return added ? std::string() : added.error().what;
  };
  merged_stacks all;
  CHECK(error_of(bytes, 3, all).empty());
  CHECK(folded(all.python, rank_set::below(8)) ==
        "State@S (sleeping)@3|0-2/4-7 1\n"
        "State of data loader worker 0@S (sleeping)@3|0-2/4-7 1\n"
        "data loader worker 0@child process@3|0-2/4-7;worker_loop@train.py@3|0-2/4-7 1\n"
        "main@train.py@3|0-2/4-7 1\n");

  merged_stacks first;
  CHECK(error_of(std::string_view(bytes).substr(0, bytes.size() - 8), 3, first)
            .find("process 2 in it: cut off after ") == 0);
  CHECK(first.python.nodes().size() == 3);
  merged_stacks none;
  CHECK(error_of("", 3, none) == "it is empty");
  CHECK(error_of("hello, world, this is no dump", 3, none) == "these are no stacks");
  CHECK(error_of(bytes, 4, none) == "by its name it is of rank 4, and it holds rank 3");
  CHECK(none.python.nodes().size() == 1);
}
