#include "kube/job_wait.hpp"
#include "launch/wiring/api_access.hpp"
#include "launch/wiring/operator_run.hpp"
#include "runtime/os/kube/api_server.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace troupe::launch {

namespace {

constexpr auto asked_again_after = 1s;

/// In time: each call to the server is bounded.
kube::api_answer answer_of(kube::api_server& api, kube::api_request what) {
  const auto answer = std::make_shared<std::promise<kube::api_answer>>();
  api.call(std::move(what), [answer](const kube::api_answer& a) { answer->set_value(a); });
  return answer->get_future().get();
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
  kube::job_wait wait(o.name_space, o.awaited_job, std::chrono::steady_clock::now() + o.wait_limit);
  while (true) {
    const auto answer = answer_of(**api, wait.request());
    auto heard = wait.answered(std::chrono::steady_clock::now(), answer);
    if (heard.note)
      log("operator", *heard.note);
    if (heard.over)
      return std::move(*heard.over);
    std::this_thread::sleep_for(asked_again_after);
  }
}

} // namespace troupe::launch
