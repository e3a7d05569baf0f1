#include "launch/worker/worker_files.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

actors::assignment place(local_rank local) {
  actors::assignment a;
  a.which = generation{5};
  a.restart_count = 2;
  a.local = local;
  a.rank = 8 + local;
  return a;
}

output_contract contract() {
  output_contract c;
  c.host = "gpu7";
  c.run_directory = "/logs/job_x";
  return c;
}

/// "stdout → …, stderr → …, shown: …", without the directory's name.
std::string text(const worker_files& f) {
  const auto shorter = [&f](const std::string& path) {
    const auto own = f.directory.empty() ? std::string::npos : path.find(f.directory + "/");
    return path.empty() ? "console" : own == 0 ? path.substr(f.directory.size() + 1) : path;
  };
  auto all = shorter(f.stdout_file) + " " + shorter(f.stderr_file);
  for (const auto& s : f.shown)
    all +=
        " " + s.prefix + (s.to == ports::console_stream::out ? "out<" : "err<") + shorter(s.path);
  return all;
}

} // namespace

TEST_SUITE("worker_files") {
  TEST_CASE("each worker has a directory in that of its attempt") {
    const auto f = files_of(contract(), place(11));
    CHECK(f.attempt == "/logs/job_x/attempt_2");
    CHECK(f.directory == "/logs/job_x/attempt_2/11");
    CHECK(f.error_file == "/logs/job_x/attempt_2/11/error.json");
  }

  TEST_CASE("redirects go to files, tee to files and the console, the rest is the launcher's") {
    // torchrun's parity example: -t 0:1 -r 1:3 with three workers.
    auto c = contract();
    c.streams.tee.by_rank = {{0, {true, false}}};
    c.streams.redirects.by_rank = {{1, {true, true}}};
    CHECK(text(files_of(c, place(0))) == "stdout.log console [default0]:out<stdout.log");
    CHECK(text(files_of(c, place(1))) == "stdout.log stderr.log");
    CHECK(text(files_of(c, place(2))) == "console console");
  }

  TEST_CASE("a rank that is filtered out is not seen, and has its files all the same") {
    auto c = contract();
    c.streams.tee.everyone = {true, false};
    c.streams.shown = {1};
    CHECK(text(files_of(c, place(0))) == "stdout.log /dev/null");
    CHECK(text(files_of(c, place(1))) == "stdout.log console [default1]:out<stdout.log");
    c.streams.shown = std::set<std::uint32_t>{};
    CHECK(files_of(c, place(1)).shown.empty());
  }

  TEST_CASE("without a log directory there are no files, and what is seen is seen directly") {
    auto c = contract();
    c.run_directory.clear();
    c.streams.tee.everyone = c.streams.redirects.everyone = {true, true};
    c.streams.shown = {0};
    CHECK(text(files_of(c, place(0))) == "console console");
    CHECK(text(files_of(c, place(1))) == "/dev/null /dev/null");
    CHECK(files_of(c, place(0)).error_file.empty());
  }

  TEST_CASE("lines with the user's words have a file for the whole attempt") {
    auto c = contract();
    c.streams.tee.everyone = {true, true};
    c.streams.duplicate_stderr = {"loss"};
    const auto f = files_of(c, place(0));
    REQUIRE(f.shown.size() == 2);
    CHECK(f.shown[0].needles.empty());
    CHECK(f.shown[1].needles == std::vector<std::string>{"loss"});
    CHECK(f.shown[1].filtered_path == "/logs/job_x/attempt_2/filtered_stderr.log");
    CHECK(filtered_files(c, f.attempt) == std::vector<std::string>{f.shown[1].filtered_path});
  }

  TEST_CASE("the end of what goes to the console is kept if that is wanted") {
    auto c = contract();
    c.keeps_end_of_stderr = true;
    auto f = files_of(c, place(3));
    CHECK(text(f) == "console stderr.copy err<stderr.copy");
    CHECK(f.shown.front().passes_through);
    c.streams.tee.everyone = {false, true};
    f = files_of(c, place(3));
    CHECK(text(f) == "console stderr.log [default3]:err<stderr.log");
    CHECK_FALSE(f.shown.front().passes_through);
    c.streams.tee = {};
    c.streams.shown = std::set<std::uint32_t>{0};
    CHECK(files_of(c, place(3)).shown.empty());
  }

  TEST_CASE("the prefix is torchrun's or the user's") {
    auto c = contract();
    c.role = "trainer";
    c.streams.tee.everyone = {true, false};
    CHECK(files_of(c, place(3)).shown.front().prefix == "[trainer3]:");
    c.streams.prefix_template = "${hostname}/$rank ${role_name}.${local_rank}| ";
    CHECK(files_of(c, place(3)).shown.front().prefix == "gpu7/11 trainer.3| ");
    c.streams.prefix_template = "$time ${node} [${rank}] ";
    c.node = "node-1";
    CHECK(files_of(c, place(3)).shown.front().prefix == "${time} node-1 [11] ");
  }
}
