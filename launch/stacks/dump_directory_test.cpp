#include "launch/stacks/dump_directory.hpp"

#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/stack_files.hpp"
#include "diag/stacks/testing/some_stacks.hpp"
#include "launch/stacks/stack_outputs.hpp"

#include <doctest/doctest.h>
#include <protozero/pbf_writer.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;
using diag::testing::process;

namespace fs = std::filesystem;

namespace {

class scratch_folder {
 public:
  scratch_folder() {
    auto name = (fs::temp_directory_path() / "stacks-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  void write_rank(std::uint32_t rank, std::uint32_t world,
                  const std::vector<std::string>& stack) const {
    write(diag::dump_file_name({rank, world}), diag::dump_of({process(rank, world, stack)}));
  }
  std::string text() const { return path_.string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string file_of_xpu_timer(const std::string& function) {
  std::string bytes;
  protozero::pbf_writer file(bytes);
  {
    protozero::pbf_writer thread(file, 2);
    protozero::pbf_writer frame(thread, 7);
    frame.add_string(1, function);
    frame.add_string(2, "train.py:7");
  }
  file.add_string(11, "S (sleeping)");
  return bytes;
}

} // namespace

TEST_CASE("what can be read is merged, and what cannot is named") {
  const scratch_folder folder;
  folder.write_rank(0, 6, {"main"});
  folder.write_rank(1, 6, {"main"});
  folder.write("00002-00006.stacktrace", file_of_xpu_timer("main"));
  folder.write("00003-00006.stacktrace", "\xff no protobuf");
  folder.write("rank-00004-of-00006.stacks", "garbage that is no message");
  folder.write("notes.txt", "no dump");
  REQUIRE(::mkfifo((folder.path() / "rank-00005-of-00006.stacks").c_str(), 0600) == 0);
  const auto all = gather_stacks(folder.text(), 2);
  REQUIRE(all);
  CHECK(all->files == 3);
  CHECK(all->stacks.absent().text() == "3-5");
  REQUIRE(all->remarks.size() == 3);
  CHECK(all->remarks[0].find("00003-00006.stacktrace: it is cut off or no file of xpu_timer") == 0);
  CHECK(all->remarks[1] == "rank-00004-of-00006.stacks: these are no stacks");
  CHECK(all->remarks[2] == "rank-00005-of-00006.stacks: it is no file");
  CHECK(diag::folded(all->stacks.python, diag::rank_set::below(6)) ==
        "State@S (sleeping)@0-2|3-5 1\n"
        "main@train.py@0-2|3-5 1\n");
}

TEST_CASE("several threads give what one gives") {
  const scratch_folder folder;
  for (std::uint32_t rank = 0; rank < 200; ++rank)
    folder.write_rank(rank, 200, {"main", rank % 50 == 7 ? "read" : "all_reduce"});
  const auto one = gather_stacks(folder.text(), 1), many = gather_stacks(folder.text(), 4);
  REQUIRE(one);
  REQUIRE(many);
  CHECK(diag::to_json(one->stacks) == diag::to_json(many->stacks));
  CHECK(many->stacks.ranks.text() == "0-199");
}

TEST_CASE("files of several hangs in one directory are told") {
  const scratch_folder folder;
  folder.write_rank(0, 2, {"main"});
  folder.write_rank(0, 4, {"main"});
  const auto all = gather_stacks(folder.text(), 1);
  REQUIRE(all);
  REQUIRE(all->remarks.size() == 2);
  CHECK(all->remarks[0] == "there are several dumps of rank 0: they are merged");
  CHECK(all->remarks[1].find("worlds of 2 and of 4 ranks") != std::string::npos);
}

TEST_CASE("a directory without stacks, and one that is not there, are errors with one line") {
  const scratch_folder folder;
  CHECK(gather_stacks(folder.text(), 1).error().what.find(" has no stacks: ") != std::string::npos);
  CHECK(gather_stacks(folder.text() + "/no", 1).error().what ==
        folder.text() + "/no: No such file or directory");
  folder.write("rank-00000-of-00001.stacks", "");
  CHECK(gather_stacks(folder.text(), 1).error().what ==
        "none of the 1 dumps in " + folder.text() +
            " can be read; rank-00000-of-00001.stacks: it is empty");
}

TEST_CASE("all files are written, and the report says what is missing") {
  const scratch_folder folder;
  folder.write_rank(0, 3, {"main", "all_reduce"});
  folder.write_rank(1, 3, {"main", "read"});
  auto all = gather_stacks(folder.text(), 1);
  REQUIRE(all);
  all->stacks.add_missing("no symbols\x1b[31m", all->stacks.ranks);
  const auto into = folder.text() + "/out/here";
  REQUIRE(write_stacks(all->stacks, into));
  CHECK(folder.read("out/here/py_stack") ==
        diag::folded(all->stacks.python, diag::rank_set::below(3)));
  CHECK(folder.read("out/here/stacks.json") == diag::to_json(all->stacks));
  CHECK(folder.read("out/here/py_stack.svg").find("all_reduce@train.py@0|1-2") !=
        std::string::npos);
  CHECK(fs::exists(into + "/cpp_stack.svg"));
  const auto report = report_of(*all, into);
  CHECK(report.find("2 dumps: 2 of 3 ranks (0-1)\nnothing of 1 ranks: 2\n") == 0);
  CHECK(report.find("missing of ranks 0-1: no symbols") != std::string::npos);
  CHECK(report.find('\x1b') == std::string::npos);
  CHECK(report.find("/py_stack.svg: 2 different stacks of 2 threads\n") != std::string::npos);
}

TEST_CASE("what the bounds leave out is told") {
  const scratch_folder folder;
  folder.write_rank(0, 1, std::vector<std::string>(2 * limits::stack_frames_max, "again"));
  const auto all = gather_stacks(folder.text(), 1);
  REQUIRE(all);
  CHECK(report_of(*all, "out").find("beyond the bounds: 1 stacks lack their middle, 0 end early") !=
        std::string::npos);
}

TEST_CASE("a directory that cannot be written to is named") {
  const scratch_folder folder;
  folder.write("file", "");
  diag::merged_stacks stacks;
  CHECK_FALSE(write_stacks(stacks, folder.text() + "/file/below"));
}
