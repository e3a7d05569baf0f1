#pragma once

#include "diag/stacks/merged_stacks.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Where the stacks of a whole job become pictures for people.
namespace troupe::diag {

/// What is to be written.
struct stacks_to_write {
  /// Ranks of which nothing came, and why.
  struct absent_part {
    std::string why;
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 0;
  };
  std::uint64_t dump = 0;
  /// Of the nodes that answered, which may be none.
  std::vector<messages::msg<messages::MergedStacks>> of;
  std::vector<absent_part> absent;
};

/// What was written.
struct stacks_written {
  std::string directory; ///< empty: nothing could be written, for the reason in `why`
  std::string why;
  std::uint32_t ranks = 0;
  std::uint32_t world_size = 0;
  /// What came of all nodes, but for the native stacks: enough for a person at a terminal, and
  /// small.
  std::shared_ptr<const merged_stacks> shown = std::make_shared<merged_stacks>();
};

/// Nothing blocks; `done` is called from another thread.
class stacks_archive {
 public:
  virtual ~stacks_archive() = default;
  /// The lowest number of a dump such that nothing was written under it or a higher one, by an
  /// earlier life of this program either.
  virtual std::uint64_t free_number() = 0;
  /// They are merged once more, and written as pictures and as text.
  virtual void write(stacks_to_write what, std::function<void(stacks_written)> done) = 0;
};

/// Without a place to write to.
class no_stacks_archive : public stacks_archive {
 public:
  std::uint64_t free_number() override { return 1; }
  void write(stacks_to_write, std::function<void(stacks_written)> done) override {
    done({{}, "this program writes none", 0, 0});
  }
};

} // namespace troupe::diag
