#include "launch/wiring/run_directory.hpp"

#include "runtime/os/entries_of.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

constexpr auto temporary_prefix = "troupe_";
/// A directory that is being made has no owner yet.
constexpr std::chrono::seconds unclaimed_after{60};
/// A temporary directory may be very full.
constexpr std::size_t looked_at_most = 4'096;

/// Whether a worker has written anything. The file of --auto_tunning is the launcher's own.
bool holds_output(const fs::path& directory) {
  std::error_code gone;
  // Another run may remove the directory meanwhile, which is an error of the iterator.
  for (fs::recursive_directory_iterator at(directory, gone), end; !gone && at != end;
       at.increment(gone)) {
    const auto extension = at->path().extension();
    std::error_code missing;
    if (at->path().filename() != tuning_file_name &&
        (extension == ".log" || extension == ".json" || extension == ".prom" ||
         extension == ".stacks") &&
        at->is_regular_file(missing) && at->file_size(missing) > 0)
      return true;
  }
  return gone && gone != std::errc::no_such_file_or_directory;
}

/// Held as long as the owner lives, whatever ends it; processes that it starts do not inherit it.
constexpr auto owner_file = ".owner";
/// The same until it is locked: `.owner` is never there without its lock while the owner lives.
constexpr auto unlocked_owner_file = ".owner.new";

std::shared_ptr<const os::unique_fd> claim(const fs::path& directory) {
  const auto unlocked = directory / unlocked_owner_file;
  auto lock = std::make_shared<os::unique_fd>(
      ::open(unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  // Without it the directory of a killed run stays: that is all.
  if (!*lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0 ||
      ::rename(unlocked.c_str(), (directory / owner_file).c_str()) != 0)
    return nullptr;
  return lock;
}

/// A directory of this user's; its age.
std::optional<std::chrono::seconds> age_of_own(const fs::path& directory) {
  struct stat is {};
  if (::lstat(directory.c_str(), &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != ::geteuid())
    return std::nullopt;
  return std::chrono::seconds(std::time(nullptr) - is.st_mtime);
}

/// Of a run that has ended and could not tidy up; no other process removes it at the same time.
os::unique_fd locked_if_abandoned(const fs::path& directory) {
  os::unique_fd lock(::open((directory / owner_file).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return {};
  return lock;
}

/// The owner's file goes last: what is left by a run that is killed here is still abandoned.
void remove_with_owner(const fs::path& directory) {
  std::error_code ignored;
  for (const auto& entry : os::entries_of(directory))
    if (entry.path().filename() != owner_file)
      fs::remove_all(entry.path(), ignored);
  fs::remove_all(directory, ignored);
}

/// "troupe_<job>_<random>", as this program names them.
bool has_our_name(const std::string& name) {
  constexpr std::size_t random = 6;
  return name.rfind(temporary_prefix, 0) == 0 && name.size() > random &&
         name[name.size() - random - 1] == '_' &&
         std::all_of(name.end() - random, name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// Of a run that was killed before it could claim it: nothing is in there.
void remove_unclaimed(const fs::path& directory) {
  ::unlink((directory / unlocked_owner_file).c_str());
  ::rmdir(directory.c_str());
}

std::string as_name(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

/// A run of several nodes on a shared file system has one for each; the last to start is named.
/// What a person has put there stays. A file system without links has none.
void point_latest_at(const fs::path& directory) {
  const auto latest = directory.parent_path() / "latest";
  const auto made = directory.parent_path() / fmt::format(".latest_{}", ::getpid());
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(latest, ignored)) &&
      !fs::is_symlink(fs::symlink_status(latest, ignored)))
    return;
  fs::create_directory_symlink(directory.filename(), made, ignored);
  if (!ignored)
    fs::rename(made, latest, ignored);
}

result<std::string> make_directory(const std::string& base, const std::string& name) {
  std::error_code bad;
  const auto parent = base.empty() ? fs::temp_directory_path(bad) : fs::path(base);
  if (!bad && !base.empty())
    fs::create_directories(parent, bad);
  if (bad)
    return failure(errc::invalid, fmt::format("--log-dir {}: {}", parent.string(), bad.message()));
  auto pattern = (parent / (name + "_XXXXXX")).string();
  if (!::mkdtemp(pattern.data()))
    return failure(errc::invalid, fmt::format("--log-dir: no directory can be made in {}: {}",
                                              parent.string(), std::strerror(errno)));
  return pattern;
}

} // namespace

result<run_directory> run_directory::make(const std::string& log_dir, const std::string& job,
                                          const std::string& node) {
  const bool no_files = log_dir == "/dev/null";
  const bool temporary = no_files || log_dir.empty();
  auto path =
      temporary
          ? make_directory({}, temporary_prefix + as_name(job))
          : make_directory(log_dir, fmt::format("{}_{:%Y%m%d-%H%M%S}_{}", as_name(job),
                                                fmt::localtime(std::time(nullptr)), as_name(node)));
  if (!path)
    return tl::make_unexpected(path.error());
  if (!temporary)
    point_latest_at(*path);
  return run_directory(*path, no_files ? std::string{} : *path, temporary,
                       temporary ? claim(*path) : nullptr);
}

void run_directory::remove_abandoned() {
  std::error_code bad;
  const auto parent = fs::temp_directory_path(bad);
  std::size_t looked_at = 0;
  for (fs::directory_iterator at(parent, bad), end; !bad && at != end; at.increment(bad)) {
    if (++looked_at > looked_at_most)
      return;
    const auto& directory = at->path();
    const auto name = directory.filename().string();
    if (name.rfind(temporary_prefix, 0) != 0)
      continue;
    const auto age = age_of_own(directory);
    if (!age)
      continue;
    if (const auto lock = locked_if_abandoned(directory)) {
      if (!holds_output(directory))
        remove_with_owner(directory);
    } else if (*age >= unclaimed_after && has_our_name(name)) {
      remove_unclaimed(directory);
    }
  }
}

result<std::string> run_directory::trace() const {
  const auto made = path_ + "/trace";
  std::error_code bad;
  fs::create_directories(made, bad);
  if (bad)
    return failure(errc::unavailable, fmt::format("--trace: {}: {}", made, bad.message()));
  return made;
}

void run_directory::tidy_up() const {
  if (!temporary_ || holds_output(path_))
    return;
  std::error_code ignored; // it lies in the temporary directory, which the system tidies up as well
  fs::remove_all(path_, ignored);
}

} // namespace troupe::launch
