#include "actors/master/recovery/failure_ledger.hpp"

#include "actors/limits.hpp"
#include "messages/limits.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

constexpr int sigabrt = 6;
constexpr std::chrono::microseconds longest_ago = 24h;

} // namespace

void failure_ledger::take(instant now, const node_name& node,
                          capnp::List<WorkerFailure>::Reader failures,
                          std::optional<instant> not_before, const hardware_signs& signs) {
  for (auto f : failures) {
    const bool known = std::any_of(failures_.begin(), failures_.end(), [&](const failure& k) {
      return k.node == node && k.local == f.getLocalRank() && k.pid == f.getPid();
    });
    if (known)
      continue;
    const auto ago_us = std::min<std::uint64_t>(f.getAgoUs(), longest_ago.count());
    const auto ago =
        std::min<duration>(std::chrono::microseconds(ago_us), now - not_before.value_or(instant{}));
    failures_.push_back(failure{
        node, f.getLocalRank(), f.getRank(), f.getPid(), f.getExitCode(), f.getMessage().cStr(),
        f.getUnixTimeMs(), f.getBeforeStart(), f.getLogFile().cStr(), f.getTraceback().cStr(),
        f.getHost().cStr(), now - ago, f.getStopped(),
        classify({f.getExitCode(), f.getOutOfMemory(), std::string_view(f.getMessage().cStr()),
                  std::string_view(f.getTraceback().cStr()),
                  std::string_view(f.getLogTail().cStr())},
                 signs)});
  }
  put_root_cause_first();
  // What showed last tells least: peers that fail since their peer has gone are many.
  if (failures_.size() > limits::failures_kept)
    failures_.erase(failures_.begin() + limits::failures_kept, failures_.end());
}

void failure_ledger::put_root_cause_first() {
  if (failures_.empty())
    return;
  std::stable_sort(failures_.begin(), failures_.end(), [](const failure& a, const failure& b) {
    return a.stopped != b.stopped ? b.stopped : a.shown_at < b.shown_at;
  });
  const auto may_be_first = failures_.front().shown_at + limits::order_uncertain;
  const auto sudden = [may_be_first](const failure& f) {
    // SIGABRT is how a library ends a process when it hears that a peer is gone.
    const bool by_signal = f.exit_code < 0 && f.exit_code != -sigabrt;
    return !f.stopped && f.shown_at <= may_be_first && (f.before_start || by_signal);
  };
  const auto cause = std::find_if(failures_.begin(), failures_.end(), sudden);
  if (cause != failures_.end())
    std::rotate(failures_.begin(), cause, cause + 1);
}

std::string failure_ledger::root_cause_in_words() const {
  invariant(!failures_.empty(), "a judgement needs a failure");
  const auto& first = failures_.front();
  if (first.pid == 0)
    return fmt::format("node {}: {}", first.node, first.message);
  const std::string advice = treatment_of(first.judged.which).advice;
  const auto sign = first.judged.sign.empty() ? "" : fmt::format(": \"{}\"", first.judged.sign);
  return fmt::format("rank {} (node {}, local rank {}, pid {}) failed: {}{}", first.rank,
                     first.node, first.local, first.pid, first.message,
                     advice.empty() ? "" : fmt::format(" ({}{})", advice, sign));
}

void failure_ledger::write(capnp::List<WorkerFailure>::Builder out) const {
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
    if (!f.judged.sign.empty())
      out[i].setSign(f.judged.sign);
    if (f.traceback.size() <= room) {
      out[i].setTraceback(f.traceback);
      room -= f.traceback.size();
    }
  }
}

} // namespace troupe::actors
