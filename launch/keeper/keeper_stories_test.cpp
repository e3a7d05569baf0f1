#include "tests/process/kept_world.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// What a keeper and the supervisors in its care went through, in their own words.
std::string story(const std::string& verb) {
  const scratch place;
  real_world world;
  CHECK(world.run(probe(verb, place / "out")).success());
  CHECK(world.sweep() == 0);
  return content(place / "out");
}

} // namespace

TEST_CASE("a process outlives its supervisor, and its end is told to the next one") {
  CHECK(story("adopt") == "life 0\nlife 1: the same process, label 7\nended with signal 15\n");
}

TEST_CASE("an end that came while there was no supervisor is told to the next one") {
  CHECK(story("adopt-ended") == "life 0\nlife 1: the same process, label 7\nended with code 5\n");
}

TEST_CASE("an end that was told before its worker's actor was there is told to that actor") {
  CHECK(story("adopt-after-sweep") == "life 0\nlife 1: ended with code 5\n");
}

TEST_CASE("a survivor that is not adopted is ended by a sweep") {
  CHECK(story("disown") == "life 0\nlife 1: swept\n");
}

TEST_CASE("a process that was being started when its supervisor died is ended by a sweep") {
  CHECK(story("half-started") == "life 0\nlife 1: no survivor\nswept 1\n");
}

TEST_CASE("bytes are kept for the next supervisor, whole and the newest") {
  CHECK(story("keep") == "life 0\nlife 1: 1000000 bytes, 'b' to 'b', nothing elsewhere\n");
}

TEST_CASE("a supervisor that crashes again and again is given up") {
  CHECK(story("crash") == "lives: 11\nthe node supervisor crashed 11 times within 60.0 s, the last "
                          "time with signal 9 (SIGKILL); giving up\nexit code 1\n");
}

TEST_CASE("the user's signals reach the supervisor, a wish to end also its successor") {
  CHECK(story("signals") == "life 0 hears 12 15\nlife 1 hears 15\n");
}

TEST_CASE("a system that refuses to fork is asked again, and the node lives") {
  const auto told = story("fork-refused");
  const std::string limit = "Resource temporarily unavailable (the limit of processes is reached: "
                            "see ulimit -u, and pids.max of the control group or container)";
  CHECK(told == "the process that ends daemons when a launcher is killed cannot be started: " +
                    limit + "; trying again\nthe node supervisor cannot be started: " + limit +
                    "; trying again for 60.0 s\nlife 0\n");
}

TEST_CASE("a store whose fork is refused is there a moment later") {
  CHECK(story("store-fork-refused") == "it serves\n");
}

TEST_CASE("a supervisor that gets no threads is said in one line and started again") {
  CHECK(story("threads-refused") ==
        "the node supervisor cannot go on: no thread can be started: Resource temporarily "
        "unavailable (see ulimit -u and ulimit -v); starting it again\nlife 2\n");
}

TEST_CASE("a user who wants an end does not wait for a supervisor that is stopped") {
  CHECK(story("stopped-before-the-end") == "it goes on, and hears 15\n");
}

TEST_CASE("Ctrl-Z shows a stop to the shell, and ends of workers are heard of all the same") {
  const auto told = story("stopped");
  CHECK(told.find("it has stopped\n") != std::string::npos);
  CHECK(told.find("it goes on\n") > told.find("it has stopped\n"));
  CHECK(told.find("its worker's end is heard of: 7\n") != std::string::npos);
}

TEST_CASE("a store outlives its supervisor and ends with its handle") {
  CHECK(story("store-left") == "it serves\nit still serves\nit is ours\nit has ended\n");
}

TEST_CASE("a store that is not adopted is ended by a sweep") {
  CHECK(story("store-unwanted") == "it serves\nit still serves\nit has ended\n");
}

TEST_CASE("a port is free for the next store as soon as the last one is told to end") {
  CHECK(story("stores") == "it serves\nit serves\nit serves\nboth serve\n");
}

TEST_CASE("a store that cannot be opened, or that ends by itself, is told in one line") {
  const auto told = story("store-lost");
  CHECK(told.find("the port is in use by another program") != std::string::npos);
  CHECK(told.find("it does not serve\nthe workers' store has ended with signal 9 (SIGKILL); ") !=
        std::string::npos);
}
