#pragma once

#include "runtime/base/result.hpp"
#include "tests/sim/cluster.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::transcripts {

/// Plays the commands of one transcript on a simulated job whose network, disks and processes are
/// faultless and even: a message takes 1 ms, a record 1 ms. Besides the words of
/// tests/sim/faults.hpp it knows
///
///     nodes N [slots S] [min M] [restarts R] [lease T] [last-call T] [training T] [writes T]   a
///     master, and N nodes yet to join advance T time passes tree a shell asks for the living tree
///
/// After any other command than `advance` a tenth of a second passes, in which its consequences are
/// seen.
class scene {
 public:
  /// What could be seen: messages as they are given to links, records, processes, and what actors
  /// decided, in their words.
  result<std::vector<std::string>> play(const std::string& command);

 private:
  result<void> set_up(const std::vector<std::string>& words);
  result<void> show_tree();
  void see(const std::string& line);
  std::string with_short_numbers(std::string text);

  std::vector<std::string> seen_;
  /// Incarnations are large random numbers: numbered here in order of appearance.
  std::map<std::string, std::size_t> incarnations_;
  /// Last: it tells the others what happens.
  std::unique_ptr<sim::cluster> cluster_;
};

} // namespace troupe::transcripts
