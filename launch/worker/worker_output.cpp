#include "launch/worker/worker_output.hpp"

#include "runtime/base/generations.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

result<void> answer(const std::string& path, const std::error_code& bad) {
  if (bad)
    return failure(errc::invalid, fmt::format("log directory '{}': {}", path, bad.message()));
  return {};
}

result<void> move_aside(const std::string& attempt, generation earlier) {
  std::error_code bad;
  auto aside = fmt::format("{}.generation_{}", attempt, count_of(earlier));
  // Two masters may both have had a generation of this count.
  if (fs::exists(aside, bad))
    aside = fmt::format("{}.generation_{}", attempt, earlier.value);
  if (fs::exists(attempt, bad))
    fs::rename(attempt, aside, bad);
  return answer(attempt, bad);
}

std::string in_words(std::uint64_t bytes) {
  if (bytes < 10'000)
    return fmt::format("{} bytes", bytes);
  return bytes < 10'000'000 ? fmt::format("{} kB", bytes / 1'000)
                            : fmt::format("{} MB", bytes / 1'000'000);
}

} // namespace

worker_output::worker_output(output_contract contract,
                             std::shared_ptr<ports::console_relay> console, shown_progress progress)
    : contract_(std::move(contract)), console_(std::move(console)), progress_(std::move(progress)) {
}

result<worker_files> worker_output::begin(const actors::assignment& a) {
  const std::lock_guard lock(mutex_);
  auto files = files_of(contract_, a);
  if (files.attempt.empty())
    return files;
  if (auto made = make_directories(files, a); !made)
    return tl::make_unexpected(made.error());
  if (auto followed = follow(files, a, true); !followed)
    return tl::make_unexpected(followed.error());
  return files;
}

void worker_output::resume(const actors::assignment& a) {
  const std::lock_guard lock(mutex_);
  newest_ = a.which;
  auto files = files_of(contract_, a);
  // What cannot be shown any more is in its file still.
  (void)follow(files, a, false);
}

result<void> worker_output::follow(worker_files& files, const actors::assignment& a,
                                   bool from_its_beginning) {
  for (auto& shown : files.shown) {
    shown.progress = progress_.of(a.local, shown.to);
    if (from_its_beginning)
      *shown.progress = 0;
    auto followed = console_->follow(shown);
    // Then the worker writes to the console itself, and a failure is told without its last lines.
    if (!followed && shown.passes_through) {
      files.stderr_file.clear();
      continue;
    }
    if (shown.passes_through)
      copies_.push_back(shown.path);
    if (!followed)
      return tl::make_unexpected(followed.error());
    followed_[a.local].push_back(*followed);
  }
  return {};
}

result<void> worker_output::make_directories(const worker_files& files,
                                             const actors::assignment& a) {
  std::error_code bad;
  if (newest_ != a.which) {
    for (const auto& copy : std::exchange(copies_, {}))
      fs::remove(copy, bad);
    bad.clear();
    if (auto moved = move_aside(files.attempt, newest_); !moved)
      return moved;
    newest_ = a.which;
    finish_all();
    fs::create_directories(files.attempt, bad);
    for (const auto& filtered : filtered_files(contract_, files.attempt))
      std::ofstream(filtered, std::ios::app);
  }
  if (!bad)
    fs::create_directory(files.directory, bad);
  return answer(files.directory, bad);
}

void worker_output::end(const actors::assignment& a) {
  const std::lock_guard lock(mutex_);
  if (a.which != newest_)
    return;
  for (const auto file : followed_[a.local])
    console_->finish(file);
  followed_.erase(a.local);
}

/// Of a generation whose agent did not live to tell the ends.
void worker_output::finish_all() {
  for (const auto& [local, files] : followed_)
    for (const auto file : files)
      console_->finish(file);
  followed_.clear();
}

std::optional<std::string> worker_output::drain() {
  const auto left = console_->drain(limits::console_patience);
  if (left.empty())
    return std::nullopt;
  std::uint64_t bytes = 0;
  for (const auto& file : left)
    bytes += file.bytes;
  const auto others = left.size() == 1 ? std::string{}
                                       : fmt::format(" and {} other file{}", left.size() - 1,
                                                     left.size() == 2 ? "" : "s");
  return fmt::format("the console did not take {} of the workers' output; they are in {}{}",
                     in_words(bytes), left.front().path, others);
}

} // namespace troupe::launch
