#include "launch/worker/worker_output.hpp"

#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

using namespace troupe;
using namespace troupe::launch;
namespace fs = std::filesystem;

namespace {

/// Remembers what it was asked for.
class noted_console final : public ports::console_relay {
 public:
  result<id> follow(const ports::relayed_file& file) override {
    if (refuses)
      return failure(errc::refused, "no more watches");
    followed.push_back(file.path);
    progress.push_back(file.progress);
    return followed.size();
  }
  void finish(id file) override { finished.push_back(file); }
  std::vector<ports::unshown_output> drain(duration) override { return left; }

  bool refuses = false;
  std::vector<std::string> followed;
  std::vector<std::shared_ptr<std::atomic<std::uint64_t>>> progress;
  std::vector<id> finished;
  std::vector<ports::unshown_output> left;
};

struct story {
  story() {
    std::string pattern = (fs::temp_directory_path() / "troupe_output_XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    contract.run_directory = pattern;
    contract.streams.tee.everyone = {true, false};
    contract.streams.duplicate_stdout = {"loss"};
  }
  ~story() { fs::remove_all(contract.run_directory); }

  result<worker_files> begins(std::uint64_t g, std::uint32_t restart_count, local_rank local) {
    if (!output)
      output = std::make_unique<worker_output>(contract, console);
    auto files = output->begin(place(g, restart_count, local));
    if (files)
      std::ofstream(files->stdout_file) << "generation " << g;
    return files;
  }
  void ends(std::uint64_t g, std::uint32_t restart_count, local_rank local) {
    output->end(place(g, restart_count, local));
  }
  static actors::assignment place(std::uint64_t g, std::uint32_t restart_count, local_rank local) {
    actors::assignment a;
    a.which = generation{g};
    a.restart_count = restart_count;
    a.local = local;
    return a;
  }
  std::string log(const std::string& path) const {
    std::ifstream in(fs::path(contract.run_directory) / path);
    std::string text;
    std::getline(in, text);
    return in || !text.empty() ? text : "<none>";
  }

  output_contract contract;
  std::shared_ptr<noted_console> console = std::make_shared<noted_console>();
  std::unique_ptr<worker_output> output;
};

} // namespace

TEST_SUITE("worker_output") {
  TEST_CASE("a worker that is resumed keeps its files, and the console goes on where it was") {
    story s;
    const shown_progress progress;
    s.output = std::make_unique<worker_output>(s.contract, s.console, progress);
    *progress.of(1, ports::console_stream::out) = 5;
    REQUIRE(s.begins(1, 0, 1));
    CHECK(s.console->progress.back()->load() == 0);
    *progress.of(1, ports::console_stream::out) = 12;
    s.output = std::make_unique<worker_output>(s.contract, s.console, progress);
    s.output->resume(story::place(1, 0, 1));
    CHECK(s.console->progress.back()->load() == 12);
    CHECK(s.console->followed.back() == s.console->followed.front());
    CHECK(s.log("attempt_0/1/stdout.log") == "generation 1");
    s.ends(1, 0, 1);
    CHECK(s.console->finished.size() == 1);
  }

  TEST_CASE("an end of stderr that cannot be kept is no reason to start no worker") {
    story s;
    s.contract.streams.tee = {};
    s.contract.keeps_end_of_stderr = true;
    s.console->refuses = true;
    const auto files = s.begins(1, 0, 0);
    REQUIRE(files);
    CHECK(files->stderr_file.empty());
  }

  TEST_CASE("the end of a generation's stderr goes when the next one begins") {
    story s;
    s.contract.streams.tee = {};
    s.contract.keeps_end_of_stderr = true;
    for (std::uint64_t g : {1, 2}) {
      const auto files = s.begins(g, 0, 0);
      REQUIRE(files);
      std::ofstream(files->stderr_file) << "generation " << g;
    }
    CHECK(s.log("attempt_0.generation_1/0/stderr.copy") == "<none>");
    CHECK(s.log("attempt_0/0/stderr.copy") == "generation 2");
  }

  TEST_CASE("every attempt keeps its files") {
    story s;
    REQUIRE(s.begins(1, 0, 0));
    REQUIRE(s.begins(1, 0, 1));
    REQUIRE(s.begins(2, 1, 0));
    CHECK(s.log("attempt_0/0/stdout.log") == "generation 1");
    CHECK(s.log("attempt_0/1/stdout.log") == "generation 1");
    CHECK(s.log("attempt_1/0/stdout.log") == "generation 2");
    CHECK(fs::exists(s.contract.run_directory + "/attempt_1/filtered_stdout.log"));
  }

  TEST_CASE("a generation with the same restart count does not take an earlier one's files") {
    story s;
    for (std::uint64_t g : {1, 2, 4})
      for (local_rank local : {0, 1})
        REQUIRE(s.begins(g, 0, local));
    CHECK(s.log("attempt_0/1/stdout.log") == "generation 4");
    CHECK(s.log("attempt_0.generation_1/1/stdout.log") == "generation 1");
    CHECK(s.log("attempt_0.generation_2/0/stdout.log") == "generation 2");
  }

  TEST_CASE("two generations of the same count, of two masters, both keep their files") {
    story s;
    const auto of_the_next_master = next_generation(generation{1}, term{7}).value;
    for (const auto g : {std::uint64_t{2}, of_the_next_master, of_the_next_master + 1})
      REQUIRE(s.begins(g, 0, 0));
    CHECK(s.log("attempt_0.generation_2/0/stdout.log") == "generation 2");
    CHECK(s.log(fmt::format("attempt_0.generation_{}/0/stdout.log", of_the_next_master)) ==
          fmt::format("generation {}", of_the_next_master));
  }

  TEST_CASE("a worker's files are shown from its beginning to its end, once") {
    story s;
    REQUIRE(s.begins(1, 0, 0));
    REQUIRE(s.begins(1, 0, 1));
    CHECK(s.console->followed.size() == 2);
    s.ends(1, 0, 1);
    s.ends(1, 0, 1);
    CHECK(s.console->finished == std::vector<ports::console_relay::id>{2});
    // The end of the other was not reported; the next generation implies it.
    REQUIRE(s.begins(2, 0, 0));
    CHECK(s.console->finished == std::vector<ports::console_relay::id>{2, 1});
    s.ends(1, 0, 0);
    CHECK(s.console->finished.size() == 2);
  }

  TEST_CASE("what cannot be made or shown is named") {
    story s;
    s.console->refuses = true;
    CHECK(s.begins(1, 0, 0).error().what == "no more watches");
    std::ofstream(s.contract.run_directory + "/attempt_1") << "in the way";
    const auto refused = s.begins(2, 1, 0);
    REQUIRE_FALSE(refused);
  }

  TEST_CASE("what the console did not take is told in one line") {
    story s;
    REQUIRE(s.begins(1, 0, 0));
    CHECK_FALSE(s.output->drain());
    s.console->left = {{"/logs/a", 12'345'678}, {"/logs/b", 1}};
    CHECK(*s.output->drain() == "the console did not take 12 MB of the workers' output; they are "
                                "in /logs/a and 1 other file");
    s.console->left.pop_back();
    s.console->left.front().bytes = 17;
    CHECK(*s.output->drain() ==
          "the console did not take 17 bytes of the workers' output; they are in /logs/a");
  }
}
