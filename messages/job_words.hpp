#pragma once

#include "messages/kinds.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::messages {

/// An option of the job as a node was told it (JobOption in membership.capnp).
struct job_word {
  std::string name; ///< "--straggler-factor"
  std::string value;
  bool flag = false; ///< it takes no value
  /// Each node acts on it as well, as it was told itself.
  bool nodes_act = false;
  /// The file that `value` names; empty: none, or it could not be read where the option was said.
  std::string content;

  /// "--straggler-factor 3", for people.
  std::string in_words() const;
};

/// A file that may change while the job runs, and then is not what an earlier node has sent.
constexpr auto topology_option = "--topology";

/// Whether they ask for the same, which 9 and 9.0 do. Paths may differ between machines, so of two
/// files only the contents are compared, if both are known and do not change.
bool agree(const job_word& a, const job_word& b);

using job_words = std::vector<job_word>;

/// The first with that name, or null.
const job_word* find(const job_words& words, const std::string& name);
/// "--network-check, --straggler-factor 3"
std::string in_words(const job_words& words);

/// Bounds: limits::job_options_max, limits::job_option_content_max.
bool within_bounds(const job_words& words);

job_words read_job_words(capnp::List<JobOption>::Reader list);
/// `list` has as many elements.
void write_job_words(capnp::List<JobOption>::Builder list, const job_words& words);

} // namespace troupe::messages
