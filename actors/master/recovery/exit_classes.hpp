#pragma once

#include "messages/membership.capnp.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

using exit_class = messages::WorkerFailure::ExitClass;

/// What is known of a worker's end. An error file tells what ended the worker; its log also tells
/// what it survived. So exit codes and the error file are believed at once, and the log only
///   - if the worker ended by itself: one that was killed, or was told to go, did not die of what
///     it had complained about; and one that exits with 0 has not failed at all;
///   - about hardware: only the driver uses its words, and an exception often only says that a
///     library has failed;
///   - about memory, which programs run out of and go on: if no error file says what it was, and
///     then in the last traceback, or without one in the last line.
struct exit_evidence {
  std::int32_t exit_code = 0; ///< minus the signal's number
  bool out_of_memory = false; ///< the kernel has killed for lack of memory meanwhile
  std::string_view message;   ///< one line
  std::string_view traceback; ///< from its error file; empty if there is none
  std::string_view log_tail;  ///< the last lines of its stderr; empty where that is no file
  bool hung = false;          ///< its node has ended it because it kept the others waiting
};

/// Made where the failure is taken, and sent on with it: no other component looks at the evidence.
struct judgement {
  exit_class which = exit_class::UNKNOWN;
  /// The line of the traceback or the log that says so, cut to limits::matched_line_max; empty if
  /// the exit code or the message does.
  std::string matched_line;
};

/// By what broken hardware is known; both can be set, and replace these.
/// The exit codes are a convention of DLRover's agents.
struct hardware_signs {
  std::vector<std::int32_t> exit_codes{201, 202};
  /// In an error file or at the end of a log, in small letters; any case is found. What CUDA, its
  /// driver and Ascend's call broken.
  std::vector<std::string> words{
      "uncorrectable ecc error", "ecc_uncorrectable",    "double bit ecc error", "double bit error",
      "hbm multi bit ecc",       "fallen off the bus",   "gpu is lost",          "nvlink error",
      "hardware stack error",    "device hardware error"};
};

/// One class of ends: its name, and what is done about it.
struct exit_treatment {
  exit_class which;
  const char* name;
  /// Whether the node is given up, if a world can be formed without it. That costs no restart; if
  /// it is needed, its failure is one like any other. All others are counted against the node.
  bool part_with_node;
  /// What a person should know; empty if the failure speaks for itself.
  const char* advice;
};

/// The table: one row per class, in the order in which they are looked for.
const std::vector<exit_treatment>& exit_treatments();
const exit_treatment& treatment_of(exit_class which);

judgement classify(const exit_evidence& e, const hardware_signs& signs);

} // namespace troupe::actors
