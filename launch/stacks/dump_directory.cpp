#include "launch/stacks/dump_directory.hpp"

#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/xpu_timer_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// A thread for fewer files takes longer to start than to read them.
constexpr std::size_t files_for_a_thread = 32;

struct dump {
  fs::path path;
  diag::dump_name of;
  bool by_xpu_timer = false;
};

std::optional<dump> dump_at(const fs::path& path) {
  const auto name = path.filename().string();
  if (const auto ours = diag::dump_named(name))
    return dump{path, *ours, false};
  if (const auto theirs = diag::xpu_timer_named(name))
    return dump{path, *theirs, true};
  return std::nullopt;
}

/// In the order of their ranks, so that runs of ranks grow at their ends.
result<std::vector<dump>> dumps_in(const std::string& directory) {
  std::vector<dump> found;
  std::error_code wrong;
  for (fs::directory_iterator at(directory, wrong), end; !wrong && at != end; at.increment(wrong))
    if (auto d = dump_at(at->path()))
      found.push_back(std::move(*d));
  if (wrong)
    return failure(errc::absent, fmt::format("{}: {}", directory, wrong.message()));
  std::sort(found.begin(), found.end(), [](const dump& a, const dump& b) {
    return a.of.rank != b.of.rank ? a.of.rank < b.of.rank : a.path < b.path;
  });
  return found;
}

/// A file is read whole, or not at all. Another thing than a file could keep the reader waiting.
result<std::string> contents_of_dump(const fs::path& path) {
  std::error_code wrong;
  const auto size = fs::is_regular_file(path, wrong) ? fs::file_size(path, wrong) : 0;
  if (wrong)
    return failure(errc::absent, wrong.message());
  if (!fs::is_regular_file(path, wrong))
    return failure(errc::invalid, "it is no file");
  if (size > limits::stack_file_max)
    return failure(errc::invalid, fmt::format("its {} MiB are more than a dump has ({} MiB)",
                                              size >> 20, limits::stack_file_max >> 20));
  std::string bytes(size, '\0');
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file.is_open() || file.bad())
    return failure(errc::absent, std::strerror(errno != 0 ? errno : EIO));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

result<void> add_one(const dump& d, diag::merged_stacks& into) {
  const auto bytes = contents_of_dump(d.path);
  if (!bytes)
    return tl::make_unexpected(bytes.error());
  if (!d.by_xpu_timer) {
    into.world_size = std::max(into.world_size, d.of.world_size);
    return diag::add_dump(into, *bytes, d.of);
  }
  diag::process_stacks process;
  process.rank = d.of.rank;
  process.world_size = d.of.world_size;
  auto read = diag::read_xpu_timer(*bytes, process);
  if (read || !process.threads.empty())
    into.add(process);
  else
    into.world_size = std::max(into.world_size, d.of.world_size);
  return read;
}

/// What one thread has merged.
struct part {
  diag::merged_stacks stacks;
  std::vector<std::string> remarks;
  std::size_t unreadable = 0;

  void read(const dump* from, const dump* end) {
    for (; from != end; ++from)
      if (auto added = add_one(*from, stacks); !added) {
        remarks.push_back(from->path.filename().string() + ": " + added.error().what);
        unreadable += stacks.ranks.has(from->of.rank) ? 0 : 1;
      }
  }
};

std::vector<part> read_all(const std::vector<dump>& dumps, unsigned threads_max) {
  const auto useful = dumps.size() / files_for_a_thread + 1;
  const auto count = std::max<std::size_t>(1, std::min<std::size_t>(threads_max, useful));
  std::vector<part> parts(count);
  std::vector<std::thread> threads;
  const auto begin_of = [&](std::size_t i) { return dumps.data() + dumps.size() * i / count; };
  for (std::size_t i = 1; i < count; ++i)
    threads.emplace_back([&, i] { parts[i].read(begin_of(i), begin_of(i + 1)); });
  parts[0].read(begin_of(0), begin_of(1));
  for (auto& t : threads)
    t.join();
  return parts;
}

/// Files of several hangs, or of several tools, in one directory.
void remark_on_mixtures(const std::vector<dump>& dumps, std::vector<std::string>& remarks) {
  std::map<std::uint32_t, std::size_t> worlds;
  diag::rank_set several;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    ++worlds[dumps[i].of.world_size];
    if (i > 0 && dumps[i].of.rank == dumps[i - 1].of.rank)
      several.add(dumps[i].of.rank);
  }
  if (!several.empty())
    remarks.push_back(fmt::format("there are several dumps of rank {}: they are merged",
                                  several.text(limits::label_runs_max)));
  if (worlds.size() > 1)
    remarks.push_back(fmt::format("there are dumps of worlds of {} and of {} ranks, as of several "
                                  "jobs or generations: they are merged",
                                  worlds.begin()->first, worlds.rbegin()->first));
}

} // namespace

result<gathered_stacks> gather_stacks(const std::string& directory, unsigned threads_max) {
  const auto dumps = dumps_in(directory);
  if (!dumps)
    return tl::make_unexpected(dumps.error());
  if (dumps->empty())
    return failure(errc::absent, fmt::format("{} has no stacks: no file is named like "
                                             "rank-00003-of-00008.stacks or 00003-00008.stacktrace",
                                             directory));
  auto parts = read_all(*dumps, threads_max);
  gathered_stacks all;
  all.stacks = std::move(parts[0].stacks);
  all.files = dumps->size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0)
      all.stacks.merge(parts[i].stacks);
    all.remarks.insert(all.remarks.end(), parts[i].remarks.begin(), parts[i].remarks.end());
    all.files -= parts[i].unreadable;
  }
  remark_on_mixtures(*dumps, all.remarks);
  if (all.stacks.ranks.empty())
    return failure(errc::invalid, fmt::format("none of the {} dumps in {} can be read; {}",
                                              dumps->size(), directory, all.remarks.front()));
  return all;
}

} // namespace troupe::launch
