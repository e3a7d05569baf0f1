#include "runtime/os/probe/child_probe_host.hpp"

#include "probe/group_probe.hpp"
#include "probe/limits.hpp"
#include "probe/node_probe.hpp"
#include "runtime/os/log/printable.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <sys/eventfd.h>

namespace troupe::os {

namespace {

using messages::any_msg;
using messages::DevicesProbeWanted;
using messages::GroupProbed;
using messages::msg;
using messages::NodeProbed;
using messages::NodeProbeWanted;
using messages::ProbeKey;

constexpr auto alone = "the probe of this node's devices";
constexpr auto with_others = "the probe of this node's devices with others'";

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
std::string reason(const char* probe, const child_end& end, duration within) {
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
    return fmt::format("{} was ended: nothing waits for it any more", probe);
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

/// The whole messages at the beginning of what it has written; at most a key and a report.
std::vector<any_msg> messages_in(const std::string& output) {
  std::vector<any_msg> found;
  for (std::size_t at = 0; found.size() < 2;) {
    const auto words = (output.size() - at) / sizeof(capnp::word);
    auto rest = kj::heapArray<capnp::word>(words);
    std::memcpy(rest.asBytes().begin(), output.data() + at, words * sizeof(capnp::word));
    const auto length = words == 0 ? 1 : capnp::expectedSizeInWordsFromPrefix(rest.asPtr());
    if (length > words)
      break;
    const auto m = messages::admit(rest.begin(), length * sizeof(capnp::word));
    if (!m)
      break;
    found.push_back(*m);
    at += length * sizeof(capnp::word);
  }
  return found;
}

/// A report on what was asked, whatever else the process has said.
std::optional<msg<NodeProbed>> report_in(const child_end& end, const msg<NodeProbeWanted>& wanted) {
  const auto all = messages_in(end.output);
  if (all.empty() || !all.back().is<NodeProbed>())
    return std::nullopt;
  auto report = all.back().as<NodeProbed>();
  if (report.read()->getCheck() != wanted.read()->getCheck())
    return std::nullopt;
  return report;
}

std::optional<msg<GroupProbed>> report_in(const child_end& end,
                                          const msg<DevicesProbeWanted>& wanted) {
  const auto all = messages_in(end.output);
  if (all.empty() || !all.back().is<GroupProbed>())
    return std::nullopt;
  auto report = all.back().as<GroupProbed>();
  auto r = report.read();
  auto asked = wanted.read();
  const auto group = asked->getGroup();
  if (r->getCheck() != group.getCheck() || r->getRound() != group.getRound() ||
      r->getGroup() != group.getGroup())
    return std::nullopt;
  return report;
}

/// Tells the key as soon as it is there.
std::function<void(const std::string&)> heard_by(const probe::probe_host::key_made& made) {
  return [made, told = false](const std::string& output) mutable {
    if (told)
      return;
    const auto all = messages_in(output);
    told = !all.empty();
    if (!told || !all.front().is<ProbeKey>())
      return;
    auto said = all.front().as<ProbeKey>().read();
    const auto key = said->getKey().asChars();
    made({key.begin(), key.size()});
  };
}

/// By the supervisor's own name, which the process does not know.
template<class T>
msg<T> named(const msg<T>& report, const std::string& node) {
  return messages::altered(
      report, report.any().envelope(), [&node](auto to) { to.setNode(node); },
      node.size() / sizeof(capnp::word) + 2);
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

void child_probe_host::begin(work next_work) {
  const auto next = std::make_shared<run>();
  {
    const std::lock_guard lock(mutex_);
    if (current_)
      current_->stop();
    current_ = next;
    if (!thread_)
      thread_.emplace("troupe-probe");
  }
  boost::asio::post(thread_->context(),
                    [next, next_work = std::move(next_work)] { next_work(*next); });
}

void child_probe_host::end_probe() {
  const std::lock_guard lock(mutex_);
  if (current_)
    current_->stop();
}

void child_probe_host::probe_node(const msg<NodeProbeWanted>& wanted, probed done) {
  begin([this, wanted, done = std::move(done)](const run& current) {
    done(report_of(wanted, current));
  });
}

void child_probe_host::probe_group(const msg<DevicesProbeWanted>& wanted, key_made made,
                                   group_probed done) {
  begin([this, wanted, made = std::move(made), done = std::move(done)](const run& current) {
    done(report_of(wanted, made, current));
  });
}

child_task child_probe_host::task_for(const any_msg& wanted, std::uint64_t within_ms,
                                      const run& current) const {
  const auto bytes = wanted.words().asChars();
  child_task task;
  task.program = program_;
  task.words = {"troupe-probe", "--messages"};
  task.input.assign(bytes.begin(), bytes.size());
  task.output_max = limits::node_probed_max;
  task.within = std::chrono::milliseconds(
      std::min(within_ms, static_cast<std::uint64_t>(within_max.count())));
  task.stop = current.stopped();
  return task;
}

msg<NodeProbed> child_probe_host::report_of(const msg<NodeProbeWanted>& wanted,
                                            const run& current) const {
  const auto task = task_for(wanted.any(), wanted.read()->getWithinMs(), current);
  const auto end = run_child(task);
  if (!end)
    return probe::not_probed(wanted, node_, fmt::format("{}: {}", alone, end.error().what));
  // A driver that breaks when it is left has told all that was asked.
  const bool may_tell = end->how != child_end::cause::stopped;
  if (const auto report = may_tell ? report_in(*end, wanted) : std::nullopt)
    return named(*report, node_);
  return probe::not_probed(wanted, node_, with_last_line(reason(alone, *end, task.within), *end));
}

msg<GroupProbed> child_probe_host::report_of(const msg<DevicesProbeWanted>& wanted,
                                             const key_made& made, const run& current) const {
  auto task = task_for(wanted.any(), wanted.read()->getGroup().getWithinMs(), current);
  task.heard = heard_by(made);
  const auto end = run_child(task);
  if (!end)
    return probe::group_not_probed(wanted, node_,
                                   fmt::format("{}: {}", with_others, end.error().what));
  const bool may_tell = end->how != child_end::cause::stopped;
  if (const auto report = may_tell ? report_in(*end, wanted) : std::nullopt)
    return named(*report, node_);
  return probe::group_not_probed(wanted, node_,
                                 with_last_line(reason(with_others, *end, task.within), *end));
}

} // namespace troupe::os
