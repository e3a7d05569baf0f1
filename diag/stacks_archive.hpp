#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Where the stacks of a whole job become pictures for people.
namespace troupe::diag {

/// What was written.
struct stacks_written {
  std::string directory; ///< empty: nothing could be written, for the reason in `why`
  std::string why;
  std::uint32_t ranks = 0;
  std::uint32_t world_size = 0;
};

/// Nothing blocks; `done` is called from another thread.
class stacks_archive {
 public:
  virtual ~stacks_archive() = default;
  /// The merged stacks of all nodes that answered, which may be none: they are merged once more,
  /// and written as pictures and as text.
  virtual void write(std::uint64_t dump,
                     const std::vector<messages::msg<messages::MergedStacks>>& of,
                     std::function<void(stacks_written)> done) = 0;
};

/// Without a place to write to.
class no_stacks_archive : public stacks_archive {
 public:
  void write(std::uint64_t, const std::vector<messages::msg<messages::MergedStacks>>&,
             std::function<void(stacks_written)> done) override {
    done({{}, "this program writes none", 0, 0});
  }
};

} // namespace troupe::diag
