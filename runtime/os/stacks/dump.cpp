#include "runtime/os/stacks/dump.hpp"

#include "runtime/os/stacks/limits.hpp"
#include "runtime/os/stacks/native_stacks.hpp"
#include "runtime/os/stacks/python_stacks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::os {

namespace {

/// "nfs_wait_bit_killable (read)"
std::string place_in_kernel(const thread_facts& t) {
  if (t.waits_in.empty() || t.syscall.empty())
    return t.waits_in + t.syscall;
  return fmt::format("{} ({})", t.waits_in, t.syscall);
}

std::vector<std::string> lines_of(const process_facts& facts) {
  std::vector<std::string> lines;
  if (facts.tracer != 0)
    lines.push_back(fmt::format("process {} traces it", facts.tracer));
  for (const auto& s : facts.stuck)
    lines.push_back(fmt::format("{} does not acknowledge {} bytes, sent again {} times", s.peer,
                                s.unacknowledged, s.retransmissions));
  for (const auto& point : facts.full)
    lines.push_back(fmt::format("the file system of {} is full", point));
  return lines;
}

void add_line(std::string& to, const std::string& line) {
  if (!line.empty())
    to += (to.empty() ? "" : "; ") + line;
}

class dumping {
 public:
  dumping(process_facts facts, elf_files& files) : files_(files) {
    done_.stacks.pid = static_cast<std::uint64_t>(facts.pid);
    for (const auto& t : facts.threads) {
      diag::thread_stacks thread;
      thread.id = static_cast<std::uint64_t>(t.id);
      thread.name = t.name;
      thread.state = t.state;
      thread.waits_in = place_in_kernel(t);
      done_.stacks.threads.push_back(std::move(thread));
    }
    done_.stacks.facts = lines_of(facts);
    done_.facts = std::move(facts);
  }

  process_dump run(const dump_options& options) {
    const auto pid = done_.facts.pid;
    auto& missing = done_.stacks.missing;
    if (done_.facts.state == 'Z') {
      missing.push_back("it has ended, and its parent has not asked how");
      return std::move(done_);
    }
    const auto mappings = mappings_of(pid);
    if (!mappings) {
      missing.push_back(mappings.error().code == errc::refused ? permission_words(pid)
                                                               : mappings.error().what);
      return std::move(done_);
    }
    // Python first: it needs nothing to be stopped.
    if (options.python)
      add_python(*mappings);
    if (options.native && !is_refused_)
      add_native(*mappings);
    for (std::size_t n = 0; n < done_.facts.threads.size(); ++n)
      if (done_.facts.threads[n].state == 'D')
        add_line(done_.stacks.threads[n].missing,
                 "it waits in the kernel, in state D: " + done_.stacks.threads[n].waits_in);
    note_end();
    return std::move(done_);
  }

 private:
  void add_python(const std::vector<mapping>& mappings) {
    auto& stacks = done_.stacks;
    auto python = python_stacks::of(done_.facts.pid, mappings, files_);
    if (!python) {
      is_refused_ = python.error().code == errc::refused;
      // A program that is no Python lacks nothing.
      if (python.error().code != errc::absent)
        stacks.missing.push_back(python.error().what);
      return;
    }
    stacks.python_version = python->version();
    auto walk = python->sample();
    for (auto& line : walk.missing)
      stacks.missing.push_back(std::move(line));
    for (auto& t : walk.threads) {
      if (t.is_loader)
        stacks.role = t.loader_worker ? fmt::format("data loader worker {}", *t.loader_worker)
                                      : "a data loader's worker";
      auto& into = thread(t.native_id);
      into.python = std::move(t.frames);
      into.holds_gil = t.holds_lock;
      add_line(into.missing, t.missing);
    }
  }

  void add_native(const std::vector<mapping>& mappings) {
    std::vector<pid_t> ids;
    for (const auto& t : done_.facts.threads)
      ids.push_back(t.id);
    auto native = read_native_stacks(done_.facts.pid, ids, mappings, files_);
    done_.stopped_longest = native.stopped_longest;
    for (auto& line : native.missing)
      done_.stacks.missing.push_back(std::move(line));
    for (auto& [id, unwound] : native.threads) {
      auto& into = thread(static_cast<std::uint64_t>(id));
      into.native = std::move(unwound.frames);
      add_line(into.missing, unwound.missing);
    }
  }

  /// One that Python knows and the kernel does not is one more.
  diag::thread_stacks& thread(std::uint64_t id) {
    auto& all = done_.stacks.threads;
    const auto known =
        std::find_if(all.begin(), all.end(), [id](const auto& t) { return id != 0 && t.id == id; });
    if (known != all.end())
      return *known;
    diag::thread_stacks t;
    t.id = id;
    all.push_back(std::move(t));
    return all.back();
  }

  /// It may have ended meanwhile, and its number may be another process's by now.
  void note_end() {
    const auto now = use_of(done_.facts.pid);
    if (!now || now->started != done_.facts.started || now->state == 'Z')
      done_.stacks.missing.push_back("it ended while it was read");
  }

  elf_files& files_;
  process_dump done_;
  bool is_refused_ = false;
};

} // namespace

result<process_dump> stack_reader::dump(pid_t pid, const dump_options& options) {
  auto facts = facts_of(pid, connections_);
  if (!facts)
    return tl::make_unexpected(facts.error());
  return dumping(std::move(*facts), files_).run(options);
}

} // namespace troupe::os
