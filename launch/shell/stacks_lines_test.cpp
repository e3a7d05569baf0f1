#include "launch/shell/stacks_lines.hpp"

#include <boost/json/parse.hpp>
#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::launch;

namespace {

struct call {
  const char* function;
  const char* source;
  std::uint32_t line;
};

void add(diag::stack_trie& trie, std::uint32_t rank, char state, const std::vector<call>& frames) {
  std::vector<diag::stack_trie::step> stack;
  trie.add(rank, {{diag::state_frame(trie, {}, state), 0}});
  for (const auto& f : frames)
    stack.push_back({trie.frame_of(f.function, f.source), f.line});
  trie.add(rank, stack);
}

const call module{"<module>", "train.py", 40}, train{"train", "train.py", 12};
const call reduce{"all_reduce", "dist.py", 9}, read{"read", "loader.py", 7};

/// Rank 2 of four stands elsewhere, and of rank 3 nothing came.
stacks_seen one_elsewhere() {
  stacks_seen seen{"/run/stacks/3", "", {}};
  seen.stacks.world_size = 4;
  for (const std::uint32_t rank : {0u, 1u, 2u})
    seen.stacks.ranks.add(rank);
  for (const std::uint32_t rank : {0u, 1u})
    add(seen.stacks.python, rank, 'S', {module, train, reduce});
  add(seen.stacks.python, 2, 'S', {module, train, read});
  diag::rank_set last;
  last.add(3);
  seen.stacks.add_missing("node n1 did not answer within 5.7 s", last);
  return seen;
}

} // namespace

TEST_CASE("stacks: the answer says how many ranks, where, and what is missing of which") {
  CHECK(stacks_text(one_elsewhere(), false) ==
        "stacks of 3 of 4 ranks: /run/stacks/3/py_stack.svg and cpp_stack.svg\n"
        "nothing of rank 3\n"
        "missing of rank 3: node n1 did not answer within 5.7 s\n");
}

TEST_CASE("stacks: where nothing was written the reason is told elsewhere, the ranks here") {
  stacks_seen seen{"", "no node has answered", {}};
  CHECK(stacks_text(seen, true) == "");
  seen.stacks.world_size = 2;
  seen.stacks.add_missing("node a did not answer within 5.7 s", diag::rank_set::below(2));
  CHECK(stacks_text(seen, true) == "stacks of 0 of 2 ranks\n"
                                   "nothing of ranks 0-1\n"
                                   "missing of ranks 0-1: node a did not answer within 5.7 s\n");
}

TEST_CASE("stacks: lines go to the right only where threads part, the fewest ranks first") {
  auto seen = one_elsewhere();
  CHECK(stack_lines(seen.stacks.python) == "ranks 0-2: S (sleeping), 3 threads\n"
                                           "ranks 0-2, 3 threads\n"
                                           "  <module> (train.py:40)\n"
                                           "  train (train.py:12)\n"
                                           "  + rank 2, 1 thread\n"
                                           "    read (loader.py:7)\n"
                                           "  + ranks 0-1, 2 threads\n"
                                           "    all_reduce (dist.py:9)\n");
  // One that stands in a frame from which others have gone on, one in another line of it, and one
  // in another state.
  add(seen.stacks.python, 2, 'S', {module, {"train", "train.py", 13}});
  add(seen.stacks.python, 3, 'T', {{"", "", 0}});
  CHECK(stack_lines(seen.stacks.python) == "rank 3: T (stopped), 1 thread\n"
                                           "ranks 0-2: S (sleeping), 4 threads\n"
                                           "rank 3, 1 thread\n"
                                           "  ?? (?"
                                           "?)\n"
                                           "ranks 0-2, 4 threads\n"
                                           "  <module> (train.py:40)\n"
                                           "  train (train.py:12/13)  <- 1 thread here\n"
                                           "  + rank 2, 1 thread\n"
                                           "    read (loader.py:7)\n"
                                           "  + ranks 0-1, 2 threads\n"
                                           "    all_reduce (dist.py:9)\n");
}

TEST_CASE("stacks: names of other programs cannot write on the terminal, nor without end") {
  diag::stack_trie trie;
  add(trie, 0, 'S', {{"\x1b[2J", "a\nb", 1}});
  CHECK(stack_lines(trie).find('\x1b') == std::string::npos);
  for (std::uint32_t i = 0; i < 6'000; ++i)
    add(trie, 0, 'S', {{"f", std::to_string(i).c_str(), 1}});
  const auto lines = stack_lines(trie);
  CHECK(lines.size() < 300'000);
  CHECK(lines.find(" further frames are in the pictures\n") != std::string::npos);
}

TEST_CASE("stacks: the document has what the lines say") {
  auto seen = one_elsewhere();
  seen.why = "a \"reason\"\n";
  const auto text = stacks_json(seen);
  CHECK(text.find('\n') == std::string::npos);
  const auto document = boost::json::parse(text).as_object();
  CHECK(document.at("schema").as_string() == "troupe.stacks/1");
  CHECK(document.at("directory").as_string() == "/run/stacks/3");
  CHECK(document.at("why").as_string() == "a \"reason\"\n");
  const auto& stacks = document.at("stacks").as_object();
  CHECK(stacks.at("absent_ranks").as_string() == "3");
  CHECK(stacks.at("python").as_object().at("nodes").as_array().size() == 5);
}
