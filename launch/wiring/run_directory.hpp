#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe::launch {

/// As DLRover calls it.
inline constexpr auto tuning_file_name = "auto_paral_config.json";

/// Where one run keeps its files: workers' logs and error files, the master's journal.
class run_directory {
 public:
  /// Makes `<log_dir>/<job>_<date>-<time>_<node>_<random>`, in local time, with `<log_dir>/latest`
  /// as a link to it; or a temporary directory if `log_dir` is empty. "/dev/null" means that
  /// workers get no files; then there is a temporary directory for the journal only.
  static result<run_directory> make(const std::string& log_dir, const std::string& job,
                                    const std::string& node);

  /// Removes temporary directories of this user's runs that were killed, unless a worker has left
  /// something there: only a later run can, and a disk may take its time.
  static void remove_abandoned();

  /// For the workers; empty if they get none.
  const std::string& for_workers() const { return for_workers_; }
  std::string journal() const { return path_ + "/journal.sqlite"; }
  /// Of the tracing library; made if need be.
  result<std::string> trace() const;
  /// What asks this run's workers to save and end.
  std::string stop() const { return path_ + "/stop"; }
  /// Settings that data loaders read (--auto_tunning).
  std::string tuning() const { return path_ + "/" + tuning_file_name; }
  /// Of a hang, which the master writes.
  std::string stacks() const { return path_ + "/stacks"; }

  /// Removes a temporary directory, unless a worker has left something in it: the output that the
  /// user sent to files, or the error file that the summary points to.
  void tidy_up() const;

 private:
  run_directory(std::string path, std::string for_workers, bool temporary,
                std::shared_ptr<const os::unique_fd> owner)
      : path_(std::move(path)), for_workers_(std::move(for_workers)), temporary_(temporary),
        owner_(std::move(owner)) {}

  std::string path_;
  std::string for_workers_;
  bool temporary_;
  std::shared_ptr<const os::unique_fd> owner_;
};

} // namespace troupe::launch
