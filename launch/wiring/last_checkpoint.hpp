#pragma once

#include "runtime/base/log.hpp"

#include <memory>
#include <string>

namespace troupe::launch {

/// Which complete checkpoint of each directory this node's saver has heard of last, for the end of
/// the run.
class last_checkpoint {
 public:
  last_checkpoint();

  /// `to`, listened to. May outlive this object.
  log::sink heard_in(log::sink to) const;
  /// "step 120 at /checkpoints"; empty if there was none. Of several directories all are named:
  /// which of them training goes on from is not known here.
  std::string in_words() const;

 private:
  struct known;
  std::shared_ptr<known> known_;
};

} // namespace troupe::launch
