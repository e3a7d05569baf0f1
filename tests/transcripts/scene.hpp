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
/// - `nodes N [slots S] [min M] [restarts R] [lease T] [last-call T] [training T] [writes T]
///   [steps T] [channel T] [check BYTES] [library 1] [notices 0]`: a master, and N nodes yet to
///   join; with `steps` their workers report a step every T, with `channel` they dial their node
///   supervisor T after their start, with `check` nodes are checked first, by messages of so many
///   bytes, and with `library` by their devices; with `notices 0` the loss of a peer ends no
///   worker;
/// - `advance T`: time passes;
/// - `story`: from here on only what a launcher tells its user is seen;
/// - `tree [NAME]…`: a shell asks for the living tree; with names, of the rows called so;
/// - `for T COMMAND`: its consequences are seen for so long, else for a tenth of a second.
class scene {
 public:
  /// What could be seen: messages as they are given to links, records, processes, and what actors
  /// decided, in their words.
  result<std::vector<std::string>> play(const std::string& command);

 private:
  result<void> set_up(const std::vector<std::string>& words);
  /// Of the rows with these names, and of all below them; without a name, of all.
  result<void> show_tree(const std::vector<std::string>& parts);
  void see(const std::string& line);
  std::string with_short_numbers(std::string text);

  std::vector<std::string> seen_;
  bool story_only_ = false;
  /// Incarnations are large random numbers: numbered here in order of appearance.
  std::map<std::string, std::size_t> incarnations_;
  /// Last: it tells the others what happens.
  std::unique_ptr<sim::cluster> cluster_;
};

} // namespace troupe::transcripts
