#pragma once

#include "kube/journal_core.hpp"
#include "tests/kube/simulated_config_maps.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

/// One master's journal_core at a simulated server, and what it has answered.
class journal_opener {
 public:
  /// Instead of the server's answer, if it gives one.
  using instead_of = std::function<std::optional<kube::api_answer>(const kube::api_request&)>;

  /// Without an end to its patience, every acknowledged record is in the ConfigMap.
  static constexpr duration endless = duration::max() / 4;

  journal_opener(simulated_config_maps& server, const std::string& owner,
                 const std::string& elastic_job = {}, duration patience = endless)
      : core(options_of(owner, elastic_job, patience)), server_(server) {}

  static kube::journal_core::options options_of(const std::string& owner,
                                                const std::string& elastic_job, duration patience) {
    kube::journal_core::options o;
    o.name_space = "jobs";
    o.name = "words";
    o.elastic_job = elastic_job;
    o.job = "words";
    o.owner = owner;
    o.least_term = 100;
    o.seed = 1;
    o.patience = patience;
    return o;
  }

  void open() { perform(core.open(now)); }
  void append(const std::string& record, bool may_be_promised = true) {
    perform(core.append(now, ++last_, record, may_be_promised));
  }
  void read() { perform(core.read(++last_)); }
  void compact(kube::journal_core::selection keep) { perform(core.compact(++last_, keep)); }

  void perform(const kube::journal_core::effects& effects) {
    for (const auto& e : effects)
      std::visit([this](const auto& one) { take(one); }, e);
  }
  /// Until nothing is left to do.
  void settle() {
    while (!held.empty() || core.next_wakeup()) {
      release();
      tick();
    }
  }
  void tick() {
    if (const auto at = core.next_wakeup()) {
      now = std::max(now, *at);
      perform(core.tick(now));
    }
  }
  /// Lets what was held reach the server.
  void release() {
    for (const auto& call : std::exchange(held, {}))
      deliver(call);
  }
  void deliver(const kube::journal_core::call& call) {
    const auto other = instead ? instead(call.what) : std::nullopt;
    perform(core.answered(now, call.number, other ? *other : server_.answer(call.what)));
  }

  kube::journal_core core;
  instant now{};
  instead_of instead;
  /// Calls wait until they are released.
  bool holds = false;
  std::vector<kube::journal_core::call> held;
  /// Begins anew where it finds records.
  bool anew = false;

  std::vector<std::string> answers; ///< in their order, in words
  std::vector<log::event> told;
  std::vector<kube::journal_core::found> found;
  std::optional<kube::journal_core::opened> opened;
  std::optional<error> not_opened;
  std::vector<std::string> records; ///< that were read last

 private:
  void take(const kube::journal_core::call& c) {
    if (holds)
      held.push_back(c);
    else
      deliver(c);
  }
  void take(const kube::journal_core::found& f) {
    found.push_back(f);
    perform(core.take(anew));
  }
  void take(const kube::journal_core::opened& o) { opened = o; }
  void take(const kube::journal_core::not_opened& n) { not_opened = n.why; }
  void take(const kube::journal_core::appended& a) {
    answers.push_back(a.index ? std::to_string(*a.index) : to_string(a.index.error().code));
  }
  void take(const kube::journal_core::have_read& r) {
    records = r.records.value_or(std::vector<std::string>{});
    answers.push_back(r.records ? "all " + std::to_string(records.size())
                                : to_string(r.records.error().code));
  }
  void take(const kube::journal_core::compacted& c) {
    answers.push_back(c.outcome ? "compacted" : to_string(c.outcome.error().code));
  }
  void take(const kube::journal_core::note& n) { told.push_back(n.event); }

  simulated_config_maps& server_;
  std::uint64_t last_ = 0;
};

inline std::vector<std::string> names(const std::vector<log::event>& told) {
  std::vector<std::string> all;
  for (const auto& event : told)
    all.push_back(event.name);
  return all;
}

/// What the next opener finds.
inline std::vector<std::string> left(simulated_config_maps& server) {
  journal_opener next(server, "next/9");
  next.open();
  if (!next.opened)
    return {"it cannot be opened"};
  next.read();
  return next.records;
}

} // namespace troupe::testing
