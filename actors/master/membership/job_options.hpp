#pragma once

#include "messages/job_words.hpp"
#include "runtime/base/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// What a master knows of its job's options when it begins.
struct job_options_known {
  /// Told to the master by its own command line. The one at a launcher has its node's.
  messages::job_words own;
  /// Taken from a node by an earlier life of this master, or an earlier master of the run.
  std::optional<messages::job_words> taken;
  std::string taken_from; ///< that node
  /// A moment ago, by an earlier life of this master: the node is about to be back.
  bool just_taken = false;
  /// Whether a job may run with these beside `own`. Null: nothing is taken, since a launcher's
  /// master was told what its own node was.
  std::function<result<void>(const messages::job_words&)> acceptable;
};

/// The options of the job, which each node says with its hello: one word for all nodes, whichever
/// program runs the master.
///
/// A stand-alone master takes what the first node says and it was not told itself; that was written
/// in the command of every pod, and nowhere else. What it was told itself counts, and the node
/// hears that. All other differences are mistakes of the user's, and no rule would guess right
/// which of two nodes is meant: the later one is refused, with the option's name. What was taken
/// binds as long as a node of the job is known: a user who has ended all of them to correct a word
/// need not end the master too.
class job_options {
 public:
  explicit job_options(job_options_known known);

  /// Of an option: what the node was told, and what the master was told itself, which counts.
  struct overruled {
    messages::job_word node;
    messages::job_word master;
  };
  /// The node may take part.
  struct fits {
    std::vector<overruled> otherwise;
    /// The job has these, the node was not told them, and each node acts on its own.
    messages::job_words not_told;
  };
  struct contradicts {
    std::string why; ///< in one line
  };
  /// The master is to begin anew with `words`, before any node is let in; none: with its own alone.
  struct is_first {
    messages::job_words words;
  };
  using opinion = std::variant<fits, contradicts, is_first>;

  /// `is_alone`: no node of the job is here, or may come back.
  opinion judge(const messages::job_words& said, bool is_alone) const;

  /// A node that says no more than the master knows was let in: the first of all. From now on
  /// nothing more is taken.
  void settle(const std::string& node);
  /// Of `is_first`: until the master begins anew no node is answered.
  void take(const std::string& node, messages::job_words words);
  bool is_taking() const { return is_taking_; }

 private:
  opinion compared(const messages::job_words& said,
                   const std::optional<messages::job_words>& taken) const;
  std::string first_node() const;

  job_options_known known_;
  bool is_taking_ = false;
};

} // namespace troupe::actors
