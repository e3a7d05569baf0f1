#pragma once

#include "launch/worker/shown_progress.hpp"
#include "launch/worker/worker_files.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::launch {

/// Sees to the workers' files: makes their directories, shows on the console what is to be shown,
/// and keeps what earlier generations wrote. The newest generation of a restart count has
/// torchrun's `attempt_<n>`; an older one, ended because the members changed and not by a failure,
/// is moved to `attempt_<n>.generation_<g>` (torchrun deletes it). Thread-safe.
class worker_output {
 public:
  worker_output(output_contract contract, std::shared_ptr<ports::console_relay> console,
                shown_progress progress = {});

  /// Before a worker is started. The error is for the user.
  result<worker_files> begin(const actors::assignment& a);

  /// A worker goes on that an earlier supervisor had begun.
  void resume(const actors::assignment& a);

  /// Its process is gone, or could not be started.
  void end(const actors::assignment& a);

  /// Waits until the console has taken everything, or no more; the line for the user if something
  /// is in the files only.
  std::optional<std::string> drain();

 private:
  result<void> make_directories(const worker_files& files, const actors::assignment& a);
  void finish_all();
  result<void> follow(worker_files& files, const actors::assignment& a, bool from_its_beginning);

  const output_contract contract_;
  const std::shared_ptr<ports::console_relay> console_;
  const shown_progress progress_;
  std::mutex mutex_;
  generation newest_{};
  std::map<local_rank, std::vector<ports::console_relay::id>> followed_;
  std::vector<std::string> copies_; ///< of this generation's stderr, without which the next does
};

} // namespace troupe::launch
