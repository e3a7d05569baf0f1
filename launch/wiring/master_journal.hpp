#pragma once

#include "actors/master/journal/journal_core.hpp"
#include "launch/options/options.hpp"
#include "launch/wiring/machine.hpp"
#include "runtime/os/journal/journal_opening.hpp"
#include "runtime/ports/journal_store.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe::launch {

/// Where a master keeps its decisions.
struct master_journal {
  std::shared_ptr<ports::journal_store> store;
  actors::journal_options options;
  /// Another master has it, or it cannot be written for good: this was told in one line.
  std::shared_ptr<const std::atomic<bool>> lost = std::make_shared<std::atomic<bool>>(false);
};

/// For the master's actors, whose supervisors give up one after the other without a journal: what
/// they warn of on their way down is left out.
log::sink until_lost(const master_journal& journal, log::sink to);

/// Where a journal in a ConfigMap is: the account, and what the pod was told.
struct journal_account {
  kubernetes_account account;
  const machine_facts& machine;
};

/// `run`: what the keeper calls this run of the launcher.
os::journal_owner owner_of(const launcher_options& o, std::uint64_t run);
os::journal_owner owner_of(const master_program_options& o, const machine_facts& machine);

/// The journal that the user named (--journal), a file or a ConfigMap, which a later master may
/// take up after a power cut, or else the one at `otherwise`: that serves this run, and ends with
/// this machine. A named one that cannot be had is an error; without the other one the master goes
/// on in memory, and says so.
result<master_journal> open_master_journal(const std::string& named, const std::string& otherwise,
                                           const os::journal_owner& mine,
                                           const journal_account& account, const log::sink& sink);

/// What a node said of the job's options to an earlier master of this run, and which node.
struct options_on_record {
  std::string node;
  messages::job_words words;
};
result<std::optional<options_on_record>> options_in(ports::journal_store& journal);

} // namespace troupe::launch
