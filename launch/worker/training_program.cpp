#include "launch/worker/training_program.hpp"

#include "launch/worker/error_file.hpp"
#include "launch/worker/limits.hpp"
#include "launch/worker/log_tail.hpp"
#include "launch/worker/memory_kills.hpp"
#include "launch/worker/rank_files.hpp"
#include "messages/limits.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>

namespace troupe::launch {

namespace {

/// Since a file was last written to.
duration age_of(const std::string& path) {
  std::error_code gone;
  const auto written = std::filesystem::last_write_time(path, gone);
  const auto age = std::filesystem::file_time_type::clock::now() - written;
  return gone || age.count() < 0 ? duration{} : std::chrono::duration_cast<duration>(age);
}

/// A worker that writes to the launcher's own streams leaves no log.
std::string log_tail_of(const std::string& stderr_file, ports::process_host& files) {
  const auto end = stderr_file.empty()
                       ? std::nullopt
                       : files.read_end_of_file(stderr_file, limits::log_tail_max + 1);
  return end ? last_lines(*end) : std::string{};
}

actors::exit_report exit_report_of(const worker_files& left, const ports::exit_status& status,
                                   ports::process_host& files, bool memory_ran_out) {
  actors::exit_report o;
  o.message = ports::to_string(status);
  o.out_of_memory = memory_ran_out;
  o.log_tail = log_tail_of(left.stderr_file, files);
  const auto& error_file = left.error_file;
  const auto content =
      error_file.empty() ? std::nullopt : files.read_small_file(error_file, limits::error_file_max);
  if (!content) {
    if (const auto exception = exception_in(o.log_tail); !exception.empty() && !status.signalled)
      o.message += ": " + exception;
    return o;
  }
  o.error_file = error_file;
  const auto recorded = read_error_file(*content);
  if (!recorded) {
    o.message += " (its error file is not what torch's @record writes)";
    return o;
  }
  o.message += ": " + recorded->line;
  o.traceback = recorded->traceback;
  o.unix_time_ms = recorded->unix_time_ms.value_or(0);
  o.ago = age_of(error_file);
  return o;
}

} // namespace

actors::training_program program_of(const worker_contract& contract,
                                    const std::shared_ptr<worker_output>& output,
                                    const std::shared_ptr<ports::process_host>& processes,
                                    const log::sink& log) {
  actors::training_program p;
  // As counted when a worker was started last.
  const auto kills = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto is_told = std::make_shared<std::atomic<bool>>(false);
  const auto once = [log, is_told](const std::string& component, const log::event& e) {
    if (!is_told->exchange(true))
      log(component, e);
  };
  p.spec = [contract, output, kills,
            once](const actors::assignment& a) -> result<ports::process_spec> {
    const auto files = output->begin(a);
    if (!files)
      return tl::make_unexpected(files.error());
    if (const auto written = write_rank_files(contract.rank_files, a); !written)
      return tl::make_unexpected(written.error());
    if (const auto removed = remove_stop_files(contract.stops, once); !removed)
      return tl::make_unexpected(removed.error());
    *kills = memory_kills().value_or(0);
    auto spec = worker_spec(contract, a);
    spec.stderr_file = files->stderr_file; // what could not be followed is the console's
    return spec;
  };
  p.explain = [contract, processes, kills](const actors::assignment& a,
                                           const ports::exit_status& status) {
    return exit_report_of(files_of(contract.output, a), status, *processes,
                          memory_kills().value_or(0) > *kills);
  };
  p.adopted = [output](const actors::assignment& a) { output->resume(a); };
  p.ended = [output](const actors::assignment& a) { output->end(a); };
  return p;
}

} // namespace troupe::launch
