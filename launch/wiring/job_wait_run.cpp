#include "kube/job_wait.hpp"
#include "launch/wiring/api_access.hpp"
#include "launch/wiring/operator_run.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/kube/api_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::launch {

namespace {

constexpr auto asked_again_after = 1s;

/// Of other threads: the answer to what was asked, and a signal.
struct arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<kube::api_answer> answer;
  int signal = 0;

  template<class Change>
  void change(Change how) {
    {
      const std::lock_guard lock(mutex);
      how();
    }
    changed.notify_one();
  }
  /// What has come by then. A signal ends the wait for anything.
  std::optional<kube::api_answer> by(instant when) {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, when, [&] { return answer || signal != 0; });
    return std::exchange(answer, std::nullopt);
  }
  int signal_had() {
    const std::lock_guard lock(mutex);
    return signal;
  }
};

result<void> waited(kube::api_server& api, kube::job_wait wait,
                    const std::shared_ptr<arrivals>& come, const log::sink& log) {
  while (true) {
    api.call(wait.request(),
             [come](const kube::api_answer& a) { come->change([&] { come->answer = a; }); });
    const auto answer = come->by(wait.until());
    if (const auto signal = come->signal_had(); signal != 0)
      return failure(errc::closed, fmt::format("signal {} ends the wait", signal));
    if (!answer)
      return tl::make_unexpected(wait.late());
    const auto now = std::chrono::steady_clock::now();
    auto heard = wait.answered(now, *answer);
    if (heard.note)
      log("operator", *heard.note);
    if (heard.over)
      return std::move(*heard.over);
    come->by(std::min(now + asked_again_after, wait.until()));
  }
}

} // namespace

result<void> run_job_wait(const operator_program_options& o, const machine_facts& machine,
                          const log::sink& log) {
  auto access = api_access_of(o.account, machine);
  if (!access)
    return tl::make_unexpected(access.error());
  auto api = os::api_server::open(std::move(*access));
  if (!api)
    return tl::make_unexpected(api.error());
  const auto come = std::make_shared<arrivals>();
  os::io_thread io;
  const signal_watch signals(io, parse_signals(signals_by_default)->ending,
                             [come](int signal) { come->change([&] { come->signal = signal; }); });
  const auto until = std::chrono::steady_clock::now() + o.wait_limit;
  return waited(**api, kube::job_wait(o.name_space, *o.awaited_job, until), come, log);
}

} // namespace troupe::launch
