#include "launch/doctor/examination.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <thread>

namespace troupe::launch::doctor {

namespace {

std::future<findings> begun(const check& c) {
  std::packaged_task<findings()> task(c.examine);
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  return answer;
}

finding unanswered(const check& c) {
  return {c.subject, grade::warning,
          fmt::format("the system has not answered within {}", in_words(c.within)),
          "what is asked here the job will ask as well, and wait",
          "look for a name server or a file system that hangs"};
}

findings answer_of(const check& c, std::future<findings>& answer) {
  try {
    return answer.get();
  } catch (const std::exception& e) {
    return {{c.subject, grade::warning, fmt::format("it could not be looked at: {}", e.what())}};
  }
}

} // namespace

void examine(const std::vector<check>& checks, const std::function<void(const finding&)>& told,
             duration slow_after, const std::function<void(const std::string&)>& slow) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::future<findings>> answers;
  for (const auto& c : checks)
    answers.push_back(begun(c));
  bool slow_told = false;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const auto& c = checks[i];
    const auto deadline = began + c.within;
    if (!slow_told && c.within > slow_after &&
        answers[i].wait_until(began + slow_after) == std::future_status::timeout) {
      slow_told = true;
      slow(c.subject);
    }
    const auto found = answers[i].wait_until(deadline) == std::future_status::ready
                           ? answer_of(c, answers[i])
                           : findings{unanswered(c)};
    for (const auto& f : found)
      told(f);
  }
}

} // namespace troupe::launch::doctor
