#include "actors/master/membership/job_command.hpp"

#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

const command_identity train{"train.py", 1, 0};
const command_identity fast{"train.py --lr 1", 1, 10};
const command_identity slow{"train.py --lr 2", 1, 20};
const command_identity other{"evaluate.py", 2, 0};

bool taken(const job_command& job, const command_identity& its, bool trains = false) {
  return !job.validation_error(its, trains);
}

messages::msg<messages::Hello> hello_of(const node_name& node, const command_identity& runs,
                                        std::uint64_t g = 0) {
  return hello(node, 1, [&](messages::Hello::Builder b) {
    b.initState().setGeneration(g);
    auto command = b.initCommand();
    command.setText(runs.text);
    command.setScript(runs.script);
    command.setArguments(runs.arguments);
  });
}

} // namespace

TEST_SUITE("job_command") {
  TEST_CASE("a node with another script is refused by name, whatever the master knows it from") {
    const auto why = job_command(train).validation_error(other, false);
    REQUIRE(why);
    CHECK(why->find("runs 'train.py', and this node was started with 'evaluate.py'") !=
          std::string::npos);
    CHECK_FALSE(taken(job_command(train), other, true));
    job_command learned;
    CHECK(taken(learned, train));
    CHECK_FALSE(learned.learn(train, false));
    CHECK_FALSE(taken(learned, other));
  }

  TEST_CASE("arguments are compared where both launchers are interchangeable") {
    CHECK_FALSE(taken(job_command(fast), slow));
    CHECK(job_command(fast).validation_error(slow, false)->find("the same --rdzv-id") !=
          std::string::npos);
    CHECK(taken(job_command(fast), fast));
    CHECK(taken(job_command(fast), train));
    CHECK(taken(job_command(train), slow));
  }

  TEST_CASE("a node of an older version does not say what it runs, and is taken") {
    CHECK(taken(job_command(train), {}));
    job_command learned;
    CHECK_FALSE(learned.learn({}, true));
    CHECK(taken(learned, other));
  }

  TEST_CASE("a node that trains already knows better than one that came first") {
    job_command learned;
    learned.learn(other, false);
    CHECK(taken(learned, train, true));
    CHECK(learned.learn(train, true));
    CHECK_FALSE(taken(learned, other));
    CHECK_FALSE(taken(learned, other, true));
  }
}

TEST_SUITE("membership_core: one job runs one command") {
  TEST_CASE("a restarted master that heard a stray first gives it up for the job's own nodes") {
    membership_core core({"job"}, messages::author("master/membership"), dawn);
    CHECK(text(core.hello(dawn, session_id{1}, hello_of("stray", other))).find("welcome 1") !=
          std::string::npos);
    const auto told = text(core.hello(dawn, session_id{2}, hello_of("a", train, 3)));
    CHECK(told.find("refuse 1: the job at this master runs 'train.py'") != std::string::npos);
    CHECK(told.find("announce NodeLost stray") != std::string::npos);
    CHECK(told.find("welcome 2") != std::string::npos);
    CHECK(text(core.hello(dawn, session_id{3}, hello_of("late", other)))
              .find("refuse 3: the job at this master runs 'train.py'") == 0);
  }
}
