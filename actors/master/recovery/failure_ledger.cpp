#include "actors/master/recovery/failure_ledger.hpp"

#include "actors/limits.hpp"
#include "messages/limits.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/rare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

constexpr int sigabrt = 6;
/// A node may say any number; this keeps the arithmetic with instants in range.
constexpr std::chrono::microseconds longest_ago = 24h;

} // namespace

/// A node tells the same failure several times: as Failed, again with each further one, as Stopped,
/// and in the hello of each new link. The first telling counts.
void failure_ledger::take(instant now, const node_name& node,
                          capnp::List<WorkerFailure>::Reader failures,
                          std::optional<instant> not_before, const hardware_signs& signs) {
  for (auto f : failures) {
    const bool known = std::any_of(failures_.begin(), failures_.end(), [&](const failure& k) {
      return k.node == node && k.local == f.getLocalRank() && k.pid == f.getPid();
    });
    TROUPE_RARE_IF(known, "failure ledger: a failure is told again");
    if (known)
      continue;
    // The age may come from the time of a file, and a clock that was set makes that arbitrarily
    // old. Without the bound by `not_before` the node with the wrong clock would always be the
    // cause.
    const auto ago_us = std::min<std::uint64_t>(f.getAgoUs(), longest_ago.count());
    const auto ago =
        std::min<duration>(std::chrono::microseconds(ago_us), now - not_before.value_or(instant{}));
    failures_.push_back(failure{
        node, f.getLocalRank(), f.getRank(), f.getPid(), f.getExitCode(), f.getMessage().cStr(),
        f.getUnixTimeMs(), f.getBeforeStart(), f.getLogFile().cStr(), f.getTraceback().cStr(),
        f.getHost().cStr(), now - ago, f.getStopped(), f.getLogTail().cStr(),
        // Once: what is told later of the same failure changes nothing.
        classify({f.getExitCode(), f.getOutOfMemory(), std::string_view(f.getMessage().cStr()),
                  std::string_view(f.getTraceback().cStr()),
                  std::string_view(f.getLogTail().cStr()), f.getHung()},
                 signs)});
  }
  put_root_cause_first();
  // What a thousand ranks say of one loss is the same a thousand times, and has to fit into a
  // message. What showed last tells least.
  if (failures_.size() > limits::failures_kept)
    failures_.erase(failures_.begin() + limits::failures_kept, failures_.end());
}

/// Three steps, from sure to likely. A process that its own node has stopped had not failed first,
/// whatever its error file says, unless no other has. Of the rest the oldest showed first. But a
/// message takes some milliseconds, and a rank that is gone makes its peers raise exceptions within
/// as many: inside of that, an end without words is the cause of those with words.
void failure_ledger::put_root_cause_first() {
  if (failures_.empty())
    return;
  std::stable_sort(failures_.begin(), failures_.end(), [](const failure& a, const failure& b) {
    // Equal times keep the order of arrival, since the sort is stable.
    return a.stopped != b.stopped ? b.stopped : a.shown_at < b.shown_at;
  });
  // Measured from the oldest and not from one to the next: a chain of failures a few milliseconds
  // apart would else reach as far as it is long.
  const auto may_be_first = failures_.front().shown_at + limits::order_uncertain;
  // A process that was never started is sudden as well: it had no peer to lose.
  const auto sudden = [may_be_first](const failure& f) {
    // SIGABRT is how a library ends a process when it hears that a peer is gone.
    const bool by_signal = f.exit_code < 0 && f.exit_code != -sigabrt;
    return !f.stopped && f.shown_at <= may_be_first && (f.before_start || by_signal);
  };
  // A rank that has lost a peer says so in its own words, in the same milliseconds.
  const auto by_itself = [may_be_first](const failure& f) {
    return !f.stopped && f.shown_at <= may_be_first && f.exit_code != -sigabrt &&
           f.judged.which != exit_class::NETWORK;
  };
  auto cause = std::find_if(failures_.begin(), failures_.end(), sudden);
  if (cause == failures_.end() && failures_.front().judged.which == exit_class::NETWORK)
    cause = std::find_if(failures_.begin(), failures_.end(), by_itself);
  // The others keep their order: the verdict shows them as the story of what followed.
  if (cause != failures_.end())
    std::rotate(failures_.begin(), cause, cause + 1);
}

std::string failure_ledger::kind_of(exit_class which, const std::string& message) {
  if (which != exit_class::SOFTWARE && which != exit_class::NETWORK)
    return {};
  // "exit code 3" has no other word than its number.
  if (message.find(':') == std::string::npos)
    return message;
  std::string kind;
  for (const char c : message)
    if (c < '0' || c > '9')
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  return kind;
}

std::string failure_ledger::root_cause_in_words() const {
  invariant(!failures_.empty(), "a judgement needs a failure");
  const auto& first = failures_.front();
  // No process has failed, so there is no rank to name: the node supervisor speaks of itself.
  if (first.pid == 0)
    return fmt::format("node {}: {}", first.node, first.message);
  // The line that decided is quoted, so that a wrong classification can be seen as one.
  const std::string advice = treatment_of(first.judged.which).advice;
  const auto matched_line =
      first.judged.matched_line.empty() ? "" : fmt::format(": \"{}\"", first.judged.matched_line);
  return fmt::format("rank {} (node {}, local rank {}, pid {}) failed: {}{}", first.rank,
                     first.node, first.local, first.pid, first.message,
                     advice.empty() ? "" : fmt::format(" ({}{})", advice, matched_line));
}

void failure_ledger::write(capnp::List<WorkerFailure>::Builder out) const {
  // The root cause is first in the list, so it is never its traceback that others leave no room
  // for.
  std::size_t room = limits::tracebacks_max;
  for (unsigned i = 0; i < failures_.size(); ++i) {
    const auto& f = failures_[i];
    out[i].setNode(f.node);
    out[i].setLocalRank(f.local);
    out[i].setRank(f.rank);
    out[i].setPid(f.pid);
    out[i].setExitCode(f.exit_code);
    out[i].setMessage(f.message);
    out[i].setUnixTimeMs(f.unix_time_ms);
    out[i].setBeforeStart(f.before_start);
    out[i].setStopped(f.stopped);
    out[i].setLogFile(f.log_file);
    out[i].setHost(f.host);
    out[i].setExitClass(f.judged.which);
    if (!f.judged.matched_line.empty())
      out[i].setMatchedLine(f.judged.matched_line);
    // Whole or not at all: half of one says less than the line that is there anyway.
    if (f.traceback.size() <= room) {
      out[i].setTraceback(f.traceback);
      room -= f.traceback.size();
    }
    if (i == 0 && !f.log_tail.empty())
      out[i].setLogTail(f.log_tail);
  }
}

} // namespace troupe::actors
