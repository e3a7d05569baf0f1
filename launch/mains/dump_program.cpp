#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/motion.hpp"
#include "launch/mains/only_columns.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/stacks/dump.hpp"
#include "runtime/os/stacks/dump_text.hpp"
#include "runtime/os/watch/process_looks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "troupe-dump";

/// Another thread than the one that may be held up.
void end_after(std::chrono::milliseconds within) {
  std::thread([within] {
    std::this_thread::sleep_for(within);
    leave(report_error(program, fmt::format("not all could be read within {}", in_words(within)),
                       exit_failure));
  }).detach();
}

/// All of them are looked at together, so it takes as long for all as for one.
std::vector<diag::motion> watch(const dump_program_options& o) {
  std::vector<diag::compared_looks> seen(o.processes.size());
  os::process_looks looks;
  auto next = std::chrono::steady_clock::now();
  for (int round = 0; round < o.samples; ++round) {
    std::this_thread::sleep_until(next);
    next += o.apart;
    looks.begin();
    for (std::size_t n = 0; n < seen.size(); ++n)
      if (const auto look = looks.at(o.processes[n].rank, o.processes[n].pid))
        seen[n].add(std::chrono::steady_clock::now(), *look);
  }
  std::vector<diag::motion> found;
  for (const auto& s : seen)
    found.push_back(s.moves());
  return found;
}

class dumps {
 public:
  explicit dumps(const dump_program_options& o) : o_(o) {}

  int run() {
    moves_ = watch(o_);
    for (std::size_t n = 0; n < o_.processes.size() && is_read_; ++n) {
      auto dump = reader_.dump(o_.processes[n].pid, what());
      if (!dump) {
        code_ = report_error(program, dump.error().what, exit_failure);
        continue;
      }
      dump->stacks.moves = moves_[n];
      write(*dump, n);
      if (o_.with_children)
        write_children(dump->facts.children, n);
    }
    return is_read_ ? code_ : exit_failure;
  }

 private:
  os::dump_options what() const { return {o_.python, o_.native}; }

  void write_children(const std::vector<pid_t>& children, std::size_t n) {
    for (const auto child : children)
      if (auto dump = reader_.dump(child, what()); dump && is_read_) {
        if (dump->stacks.role.empty())
          dump->stacks.role = "its child " + dump->facts.name;
        write(*dump, n);
      } // else it has ended since, which children may
  }

  /// All at once, so that a reader of messages sees whole ones.
  void write(os::process_dump& dump, std::size_t n) {
    dump.stacks.rank = o_.processes[n].rank;
    dump.stacks.world_size = o_.world_size;
    is_read_ =
        print(o_.as_messages ? diag::dump_of({dump.stacks}) : text_of(dump, o_.samples > 0) + "\n");
  }

  const dump_program_options& o_;
  os::stack_reader reader_;
  std::vector<diag::motion> moves_;
  int code_ = exit_success;
  bool is_read_ = true; ///< else nothing reads what is written any more
};

} // namespace

/// A process of its own: what it reads (files of a server that is gone) may hold it up for good,
/// and then its parent, or its own alarm, ends it. What was read by then has been written.
int troupe::launch::dump_program(int argc, char** argv) {
  prepare_process(program);
  const auto parsed = parse_dump(arguments_of(argc, argv), only_columns());
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<dump_program_options>(parsed);
  end_after(options.within);
  leave(dumps(options).run());
}
