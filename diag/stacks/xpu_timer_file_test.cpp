#include "diag/stacks/xpu_timer_file.hpp"

#include "diag/stacks/stack_files.hpp"

#include <doctest/doctest.h>
#include <protozero/pbf_writer.hpp>

using namespace troupe;
using namespace troupe::diag;

namespace {

struct frame_fields {
  std::string function, file;
};

void write_frames(protozero::pbf_writer& thread, unsigned tag,
                  const std::vector<frame_fields>& frames) {
  for (const auto& f : frames) {
    protozero::pbf_writer frame(thread, tag);
    frame.add_string(1, f.function);
    frame.add_string(2, f.file);
    frame.add_string(3, "origin or module");
  }
}

/// As dump_driver.py writes it: gdb's threads, py-spy's, pid, rank, state.
std::string xpu_timer_file() {
  std::string bytes;
  protozero::pbf_writer file(bytes);
  {
    protozero::pbf_writer thread(file, 1);
    thread.add_uint32(1, 4127);
    thread.add_string(2, "Unknown");
    write_frames(thread, 3,
                 {{"pthread_cond_wait@@GLIBC_2.3.2", "/usr/lib64/libpthread.so.0"},
                  {"PyEval_EvalFrameEx", "/src/Python/ceval.c:741"},
                  {"main", "??"}});
  }
  {
    protozero::pbf_writer thread(file, 2);
    thread.add_uint32(1, 1142);
    thread.add_uint64(2, 139620998182656);
    thread.add_string(3, "MainThread");
    thread.add_uint32(4, 4127);
    thread.add_bool(5, false);
    thread.add_bool(6, true);
    write_frames(thread, 7, {{"wait", "threading.py:320"}, {"<module>", "test_nccl.py:121"}});
  }
  file.add_int32(3, 1142);
  file.add_int32(4, 3);
  file.add_string(8, "Warning\nError: Permission denied\n");
  file.add_string(11, "S (sleeping)");
  return bytes;
}

} // namespace

TEST_CASE("a file of xpu_timer becomes the stacks of a process") {
  process_stacks p;
  p.rank = 3;
  p.world_size = 8;
  REQUIRE(read_xpu_timer(xpu_timer_file(), p));
  CHECK(p.pid == 1142);
  REQUIRE(p.threads.size() == 1);
  const auto& t = p.threads.front();
  CHECK(t.id == 4127);
  CHECK(t.state == 'S');
  CHECK(t.holds_gil);
  CHECK(t.python ==
        std::vector<stack_frame>{{"wait", "threading.py", 320}, {"<module>", "test_nccl.py", 121}});
  CHECK(p.missing == std::vector<std::string>{"py-spy: Error: Permission denied"});
  merged_stacks m;
  m.add(p);
  CHECK(folded(m.native, rank_set::below(8)) ==
        "State@S (sleeping)@3|0-2/4-7 1\n"
        "main@??@3|0-2/4-7;"
        "PyEval_EvalFrameEx@/src/Python/ceval.c@3|0-2/4-7;"
        "pthread_cond_wait@@GLIBC_2.3.2@/usr/lib64/libpthread.so.0@3|0-2/4-7 1\n");
}

TEST_CASE("a process in D state has no stacks, and says so") {
  std::string bytes;
  protozero::pbf_writer(bytes).add_string(11, "D (disk sleep)");
  process_stacks p;
  REQUIRE(read_xpu_timer(bytes, p));
  REQUIRE(p.threads.size() == 1);
  CHECK(p.threads.front().state == 'D');
  CHECK(p.missing.front() == "xpu_timer has read no stacks of it; its state was D (disk sleep)");
}

TEST_CASE("a file that is cut off gives what came before, and one line") {
  const auto whole = xpu_timer_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    process_stacks p;
    const auto read = read_xpu_timer(std::string_view(whole).substr(0, size), p);
    if (!read)
      CHECK(read.error().what.find('\n') == std::string::npos);
  }
  process_stacks p;
  const auto read = read_xpu_timer(std::string_view(whole).substr(0, whole.size() - 5), p);
  REQUIRE_FALSE(read);
  CHECK(read.error().what.find("it is cut off or no file of xpu_timer") == 0);
  CHECK(p.threads.size() == 1);
  process_stacks nothing;
  CHECK(read_xpu_timer("", nothing).error().what.find("it is empty") == 0);
  CHECK_FALSE(read_xpu_timer("\xff\xff\xff\xff garbage", nothing));
}

TEST_CASE("the name of a file says rank and world") {
  CHECK(xpu_timer_named("00003-00008.stacktrace")->rank == 3);
  CHECK(xpu_timer_named("00003-00008.stacktrace")->world_size == 8);
  for (const char* name : {"00008-00008.stacktrace", "0003-00008.stacktrace",
                           "00003-00008.stacktraces", "0000x-00008.stacktrace", "x.stacktrace"})
    CHECK_FALSE(xpu_timer_named(name));
}
