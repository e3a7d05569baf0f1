#pragma once

#include "messages/membership.capnp.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

using exit_class = messages::WorkerFailure::ExitClass;

/// What is known of a worker's end.
struct exit_evidence {
  std::int32_t exit_code = 0; ///< minus the signal's number
  bool out_of_memory = false; ///< the kernel has killed for lack of memory meanwhile
  std::string_view message, traceback;
};

/// By what broken hardware is known; both can be set, and replace these.
struct hardware_signs {
  std::vector<std::int32_t> exit_codes{201, 202};
  /// In the message or the traceback of an error file, in small letters; any case is found.
  std::vector<std::string> words{"uncorrectable ecc error", "ecc_uncorrectable",
                                 "fallen off the bus",      "nvlink error",
                                 "hardware stack error",    "device hardware error"};
};

/// One class of ends: its name, and what is done about it.
struct exit_treatment {
  exit_class which;
  const char* name;
  /// Whether the node is given up, if a world can be formed without it. That costs no restart; if
  /// it is needed, its failure is one like any other. All others are charged to the node.
  bool part_with_node;
  /// What a person should know; empty if the failure speaks for itself.
  const char* advice;
};

/// The table: one row per class, in the order in which they are looked for.
const std::vector<exit_treatment>& exit_treatments();
const exit_treatment& treatment_of(exit_class which);

exit_class classify(const exit_evidence& e, const hardware_signs& signs);

} // namespace troupe::actors
