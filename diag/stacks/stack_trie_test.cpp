#include "diag/stacks/stack_files.hpp"
#include "diag/stacks/testing/some_stacks.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::diag;
using namespace troupe::diag::testing;

namespace {

std::vector<merged_stacks> some_nodes(random_source& chance, std::size_t count) {
  std::vector<merged_stacks> nodes(count);
  std::uint32_t rank = 0;
  for (auto& node : nodes)
    for (auto ranks = chance.below(3); ranks > 0; --ranks)
      node.add(some_process(chance, rank++, 16));
  return nodes;
}

} // namespace

TEST_CASE("a common beginning is one branch, and each knows its ranks") {
  merged_stacks m;
  for (const std::uint32_t rank : {0u, 1u, 3u})
    m.add(process(rank, 4, {"main", "train", "all_reduce"}));
  m.add(process(2, 4, {"main", "train", "next_batch"}));
  CHECK(folded(m.python, rank_set::below(4)) ==
        "State@S (sleeping)@0-3| 1\n"
        "main@train.py@0-3|;train@train.py@0-3|;next_batch@train.py@2|0-1/3 1\n"
        "main@train.py@0-3|;train@train.py@0-3|;all_reduce@train.py@0-1/3|2 1\n");
  CHECK(m.absent().empty());
}

TEST_CASE("a stack is one branch whether its ranks run or sleep, and states are beside it") {
  merged_stacks m;
  for (const std::uint32_t rank : {0u, 1u, 2u, 3u})
    m.add(process(rank, 5, {"main", "all_reduce"}, rank == 2 ? 'R' : 'S'));
  CHECK(folded(m.python, rank_set::below(5)) ==
        "State@R (running)@2|0-1/3-4 1\n"
        "State@S (sleeping)@0-1/3|2/4 1\n"
        "main@train.py@0-3|4;all_reduce@train.py@0-3|4 1\n");
}

TEST_CASE("a stack that ends where another goes on is a line of its own") {
  merged_stacks m;
  m.add(process(0, 2, {"main"}));
  m.add(process(1, 2, {"main", "work"}, 'R'));
  m.add(process(1, 2, {"main", "work"}));
  CHECK(folded(m.python, rank_set::below(3)) == "State@R (running)@1|0/2 1\n"
                                                "State@S (sleeping)@0-1|2 1\n"
                                                "main@train.py@0-1|2 1\n"
                                                "main@train.py@0-1|2;work@train.py@1|0/2 1\n");
}

TEST_CASE(
    "what is unknown is shown as ??, and the numbers of link-time optimization are not shown") {
  merged_stacks m;
  process_stacks p;
  p.world_size = 1;
  p.threads.push_back(
      {1, "", 'D', {{"", ""}, {"run.lto_priv.7", "libpython3.11.so"}}, {}, false, {}});
  m.add(p);
  CHECK(folded(m.native, rank_set::below(1)) == "State@D (disk sleep)@0| 1\n"
                                                "run@libpython3.11.so@0|;??@??@0| 1\n");
}

TEST_CASE("in whatever order and groups stacks are merged, the same comes out") {
  random_source chance(4812);
  for (int round = 0; round < 300; ++round) {
    const auto nodes = some_nodes(chance, 6);
    merged_stacks forward, backward, left, right;
    for (const auto& node : nodes)
      forward.merge(node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      backward.merge(*node);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      (i < 3 ? left : right).merge(nodes[i]);
    right.merge(left);
    CHECK(to_json(forward) == to_json(backward));
    CHECK(to_json(forward) == to_json(right));
  }
}

TEST_CASE("lines: the smallest few, and whether there were more") {
  line_set forward, backward;
  for (const std::uint32_t line : {9u, 3u, 3u, 7u, 1u, 0u, 5u})
    forward.add(line);
  for (const std::uint32_t line : {5u, 1u, 7u, 3u, 9u})
    backward.add(line);
  CHECK(forward.lines == std::array<std::uint32_t, 4>{1, 3, 5, 7});
  CHECK(forward.more);
  CHECK(forward == backward);
  line_set few;
  few.add(2);
  few.add(2);
  CHECK_FALSE(few.more);
}

TEST_CASE("a very deep stack keeps its beginning and its end, and it is told") {
  merged_stacks m;
  std::vector<std::string> deep(5'000, "again");
  deep.front() = "main";
  deep.back() = "where_it_stands";
  m.add(process(0, 1, deep));
  CHECK(m.python.nodes().size() == limits::stack_frames_max + 2); // root and state
  CHECK(m.python.was_left_out().deep == 1);
  const auto text = folded(m.python, rank_set::below(1));
  CHECK(text.find("\nmain@train.py@0|;again@") != std::string::npos);
  CHECK(text.find(";(frames left out)@??@0|;again@") != std::string::npos);
  CHECK(text.find(";where_it_stands@train.py@0| 1\n") != std::string::npos);
}

TEST_CASE("a full trie cuts stacks, and counts them") {
  stack_trie small(4, 1'000);
  std::vector<stack_trie::step> steps;
  for (const char* name : {"a", "b", "c", "d", "e"})
    steps.push_back({small.frame_of(name, ""), 0});
  small.add(0, steps);
  CHECK(small.nodes().size() == 4);
  CHECK(small.was_left_out().full == 1);
  CHECK(small.nodes().back().ended == 1);
  stack_trie whole;
  steps.clear();
  for (const char* name : {"a", "b", "x", "y"})
    steps.push_back({whole.frame_of(name, ""), 0});
  whole.add(1, steps);
  small.merge(whole);
  CHECK(small.was_left_out().full == 2);
  CHECK(small.nodes()[2].ended == 1);
  CHECK(small.nodes()[2].ranks.text() == "0-1");
}

TEST_CASE("names that find no room are unknown, and counted") {
  stack_trie small(100, 8);
  const auto first = small.frame_of("12345678", "");
  CHECK(small.frame_at(first).function == "12345678");
  CHECK(small.frame_at(small.frame_of("123456789", "")).function.empty());
  CHECK(small.was_left_out().names == 1);
  CHECK(small.frame_of("12345678", "") == first);
}

TEST_CASE("what is missing is told once for all its ranks") {
  merged_stacks m;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto p = process(rank, 8, {"main"});
    p.missing.emplace_back("no symbols of libcuda.so.1");
    m.add(p);
  }
  CHECK(m.missing.at("no symbols of libcuda.so.1").text() == "0-2");
  CHECK(m.absent().text() == "3-7");
  for (std::size_t i = 0; i < 2 * limits::missing_lines_max; ++i)
    m.add_missing(std::to_string(i), rank_set::below(1));
  CHECK(m.missing.size() == limits::missing_lines_max);
  CHECK(m.missing_more.text() == "0");
}
