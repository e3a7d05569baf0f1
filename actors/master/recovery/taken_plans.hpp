#pragma once

#include "actors/limits.hpp"
#include "messages/journal.capnp.h"

#include <algorithm>
#include <deque>
#include <string>

namespace troupe::actors {

/// Which of the cluster's plans (a ScalePlan) have changed the job's sizes, by their identity. A
/// plan stays in the cluster, and whether that was told of its end is not certain: a later master
/// finds it again, and would do it once more over what the user has said since. Pure.
class taken_plans {
 public:
  bool has(const std::string& id) const {
    return std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  }
  /// Of too many the oldest is forgotten.
  void add(const std::string& id) {
    if (id.empty() || has(id))
      return;
    ids_.push_back(id);
    if (ids_.size() > limits::plans_taken_kept)
      ids_.pop_front();
  }
  /// Each record has all of them, so the newest says it all.
  void write(messages::SizesChanged::Builder out) const {
    auto all = out.initPlansTaken(static_cast<unsigned>(ids_.size()));
    for (unsigned i = 0; i < ids_.size(); ++i)
      all.set(i, ids_[i]);
  }
  void recall(messages::SizesChanged::Reader record) {
    ids_.clear();
    for (const auto id : record.getPlansTaken())
      add(id.cStr());
  }

 private:
  std::deque<std::string> ids_; ///< the newest last
};

} // namespace troupe::actors
