#include "launch/mains/only_columns.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/worker_hooks.hpp"
#include "messages/limits.hpp"
#include "probe/group_probe.hpp"
#include "probe/node_probe.hpp"
#include "runtime/os/probe/node_devices.hpp"
#include "runtime/os/probe/probe_text.hpp"
#include "runtime/os/probe/torch_devices.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;
using messages::DevicesProbeWanted;
using messages::GroupProbed;
using messages::NodeProbed;
using messages::NodeProbeWanted;

namespace {

constexpr auto program = "troupe-probe";
/// The supervisor's own limit comes first, unless it is gone.
constexpr auto behind_supervisor = 1s;

/// The step that a driver may never come back from.
class last_step {
 public:
  void is(const std::string& what) {
    const std::lock_guard lock(mutex_);
    step_ = what;
  }
  std::string what() {
    const std::lock_guard lock(mutex_);
    return step_;
  }

 private:
  std::mutex mutex_;
  std::string step_;
};
last_step step;

/// Another thread than the one that may be held up.
void end_after(std::chrono::milliseconds within) {
  std::thread([within] {
    std::this_thread::sleep_for(within);
    leave(report_error(program,
                       fmt::format("the probe has not ended within {}: it is at {}",
                                   in_words(within), step.what()),
                       exit_failure));
  }).detach();
}

void end_behind_supervisor(std::uint64_t within_ms) {
  constexpr std::uint64_t most = 86'400'000;
  end_after(std::chrono::milliseconds(std::min(within_ms, most)) + behind_supervisor);
}

void say_step(const std::string& what) {
  step.is(what);
  say(what + "\n");
}

result<std::unique_ptr<probe::device_port>> devices_here() {
  const auto* simulated = std::getenv(os::simulated_devices_variable);
  const auto* by_torch = std::getenv(os::torch_devices_variable);
  if (simulated == nullptr && by_torch != nullptr && *by_torch != '\0')
    return os::torch_devices(by_torch);
  return os::node_devices(simulated == nullptr ? std::string() : simulated, own_program());
}

messages::msg<NodeProbed> probed(const messages::msg<NodeProbeWanted>& wanted,
                                 const probe::step_told& at) {
  const auto devices = devices_here();
  return devices ? probe::probe_node(**devices, wanted, {}, at)
                 : probe::not_probed(wanted, {}, devices.error().what);
}

std::string standard_input() {
  std::string all;
  std::array<char, 4'096> bytes;
  while (all.size() <= limits::frame_max) {
    const auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got <= 0)
      break;
    all.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return all;
}

/// What a library prints is no part of the report.
os::unique_fd kept_output() {
  os::unique_fd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return output;
}

bool write_whole(int to, kj::ArrayPtr<const char> bytes) {
  while (bytes.size() > 0) {
    const auto written = ::write(to, bytes.begin(), bytes.size());
    if (written <= 0)
      return false;
    bytes = bytes.slice(static_cast<std::size_t>(written), bytes.size());
  }
  return true;
}

bool write_message(int to, const messages::any_msg& m) {
  return write_whole(to, m.words().asChars());
}

messages::msg<GroupProbed> probed_with_others(const messages::msg<DevicesProbeWanted>& wanted,
                                              int output) {
  const auto devices = devices_here();
  if (!devices)
    return probe::group_not_probed(wanted, {}, devices.error().what);
  // A key that the supervisor does not hear is waited for until its time is over.
  return probe::probe_group(**devices, wanted, {}, say_step, [output](const std::string& key) {
    (void)write_message(output, messages::local<messages::ProbeKey>(program, [&key](auto to) {
                                  to.setKey(kj::arrayPtr(
                                      reinterpret_cast<const kj::byte*>(key.data()), key.size()));
                                }).any());
  });
}

/// The child of a node supervisor. The last line that it has said tells where a driver ended it.
int answer_supervisor() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto output = kept_output();
  const auto asked = standard_input();
  const auto m = messages::admit(asked.data(), asked.size());
  std::optional<messages::any_msg> report;
  if (m && m->is<NodeProbeWanted>()) {
    const auto wanted = m->as<NodeProbeWanted>();
    end_behind_supervisor(wanted.read()->getWithinMs());
    report = probed(wanted, say_step).any();
  } else if (m && m->is<DevicesProbeWanted>()) {
    const auto wanted = m->as<DevicesProbeWanted>();
    end_behind_supervisor(wanted.read()->getGroup().getWithinMs());
    report = probed_with_others(wanted, output.get()).any();
  }
  if (!report)
    return report_error(program,
                        "--messages: a NodeProbeWanted or a DevicesProbeWanted is expected on the "
                        "standard input",
                        exit_usage);
  return write_message(output.get(), *report) ? exit_success : exit_failure;
}

messages::msg<NodeProbeWanted> wanted_by(const probe_program_options& o) {
  return messages::local<NodeProbeWanted>(program, [&o](NodeProbeWanted::Builder to) {
    to.setWithinMs(static_cast<std::uint64_t>(o.within.count()));
    if (!o.box)
      return;
    auto box = to.initBox();
    box.setMinBandwidth(o.box->min_bandwidth);
    box.setMinChannels(o.box->min_channels);
    auto pairs = box.initPairs(static_cast<unsigned>(o.box->pairs.size()));
    for (unsigned n = 0; n < pairs.size(); ++n) {
      pairs[n].setFirst(o.box->pairs[n].first);
      pairs[n].setSecond(o.box->pairs[n].second);
    }
  });
}

/// At a terminal each step is shown: if a driver ends this process, that is the last line.
int answer_person(const probe_program_options& o) {
  end_after(o.within);
  const bool shows_steps = ::isatty(STDERR_FILENO) == 1;
  const auto report = probed(wanted_by(o), [shows_steps](const std::string& what) {
    step.is(what);
    if (shows_steps)
      say(fmt::format("{}: {}\n", program, what));
  });
  if (!print(o.json ? os::json_of(report) + "\n" : os::text_of(report)))
    return exit_failure;
  return report.read()->getFailed().size() == 0 ? exit_success : exit_failure;
}

} // namespace

/// A process of its own: a driver that is broken takes it along, or holds it up for good, and then
/// its parent, or its own alarm, ends it.
int troupe::launch::probe_program(int argc, char** argv) {
  prepare_process(program);
  const auto parsed = parse_probe(arguments_of(argc, argv), only_columns());
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<probe_program_options>(parsed);
  // The libraries of devices are not asked to clean up.
  leave(options.as_messages ? answer_supervisor() : answer_person(options));
}
