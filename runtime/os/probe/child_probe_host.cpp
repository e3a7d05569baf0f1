#include "runtime/os/probe/child_probe_host.hpp"

#include "probe/limits.hpp"
#include "probe/node_probe.hpp"
#include "runtime/os/log/printable.hpp"
#include "runtime/os/process/bounded_child.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <sys/eventfd.h>

namespace troupe::os {

namespace {

using messages::NodeProbed;
using messages::NodeProbeWanted;

/// The master's limit comes in a message, and may be any number.
constexpr std::chrono::milliseconds within_max = std::chrono::hours(1);

std::string signal_named(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

/// The step that it was at, or the complaint of a driver.
std::string with_last_line(std::string text, const child_end& end) {
  const auto line = printable(end.last_error);
  return line.empty() ? text : fmt::format("{} (its last line: {})", text, line);
}

/// Why there is no report.
std::string reason(const child_end& end, duration within) {
  constexpr auto probe = "the probe of this node's devices";
  constexpr auto more = "run troupe-probe there to see more";
  switch (end.how) {
  case child_end::cause::signalled:
    return fmt::format("{} was killed by {}: its driver may be broken; {}", probe,
                       signal_named(end.number), more);
  case child_end::cause::late:
    return fmt::format("{} has not ended within {}, and was killed{}: its driver may hang; {}",
                       probe, in_words(within),
                       end.held ? ", but the kernel does not let it end" : "", more);
  case child_end::cause::stopped:
    return fmt::format("{} was ended: another one was asked for", probe);
  case child_end::cause::too_much:
    return fmt::format("{} has written more than {} bytes, which is no report", probe,
                       limits::node_probed_max);
  case child_end::cause::exited:
    break;
  }
  return end.output.empty()
             ? fmt::format("{} has ended with exit code {} and no report; {}", probe, end.number,
                           more)
             : fmt::format("{} has written {} bytes that are no report (exit code {})", probe,
                           end.output.size(), end.number);
}

/// A report of this check, whatever else the process has said.
std::optional<messages::msg<NodeProbed>> report_in(const child_end& end, std::uint64_t check) {
  const auto m = messages::admit(end.output.data(), end.output.size());
  if (!m || !m->is<NodeProbed>())
    return std::nullopt;
  auto report = m->as<NodeProbed>();
  if (report.read()->getCheck() != check)
    return std::nullopt;
  return report;
}

} // namespace

/// One probe that was asked for. It may be stopped before it has begun.
class child_probe_host::run {
 public:
  run() : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void stop() const {
    if (stop_)
      ::eventfd_write(stop_.get(), 1);
  }
  int stopped() const { return stop_.get(); }

 private:
  const unique_fd stop_;
};

std::shared_ptr<child_probe_host> child_probe_host::open(std::string own_program,
                                                         std::string node) {
  return std::shared_ptr<child_probe_host>(
      new child_probe_host(std::move(own_program), std::move(node)));
}

child_probe_host::child_probe_host(std::string own_program, std::string node)
    : program_(std::move(own_program)), node_(std::move(node)) {}

child_probe_host::~child_probe_host() {
  const std::lock_guard lock(mutex_);
  if (current_)
    current_->stop();
}

void child_probe_host::probe_node(const messages::msg<NodeProbeWanted>& wanted, probed done) {
  const auto next = std::make_shared<run>();
  {
    const std::lock_guard lock(mutex_);
    if (current_)
      current_->stop();
    current_ = next;
    if (!thread_)
      thread_.emplace("troupe-probe");
  }
  boost::asio::post(thread_->context(), [this, next, wanted, done = std::move(done)] {
    done(report_of(wanted, *next));
  });
}

messages::msg<NodeProbed> child_probe_host::report_of(const messages::msg<NodeProbeWanted>& wanted,
                                                      const run& current) const {
  const auto bytes = wanted.any().words().asChars();
  const auto asked = wanted.read()->getWithinMs();
  child_task task;
  task.program = program_;
  task.words = {"troupe-probe", "--messages"};
  task.input.assign(bytes.begin(), bytes.size());
  task.output_max = limits::node_probed_max;
  task.within =
      std::chrono::milliseconds(std::min(asked, static_cast<std::uint64_t>(within_max.count())));
  task.stop = current.stopped();
  const auto end = run_child(task);
  if (!end)
    return probe::not_probed(wanted, node_,
                             "the probe of this node's devices: " + end.error().what);
  const auto check = wanted.read()->getCheck();
  // A driver that breaks when it is left has told all that was asked.
  const bool may_tell = end->how != child_end::cause::stopped;
  if (const auto report = may_tell ? report_in(*end, check) : std::nullopt)
    return messages::altered(
        *report, report->any().envelope(), [this](auto to) { to.setNode(node_); },
        node_.size() / sizeof(capnp::word) + 2);
  return probe::not_probed(wanted, node_, with_last_line(reason(*end, task.within), *end));
}

} // namespace troupe::os
