#pragma once

#include "runtime/ports/keeping.hpp"

#include <map>

namespace troupe::testing {

/// A keeper's memory; the test decides when a successor sees it.
class fake_keeping final : public ports::keeping {
 public:
  void keep(ports::kept_as place, const messages::any_msg& what) override { newest_[place] = what; }
  messages::any_msg kept(ports::kept_as place) override { return inherited_[place]; }
  bool is_successor() override { return successor_; }

  /// The supervisor has crashed: what it kept last is what the next one finds.
  void crash() {
    inherited_ = newest_;
    successor_ = true;
  }

 private:
  std::map<ports::kept_as, messages::any_msg> newest_;
  std::map<ports::kept_as, messages::any_msg> inherited_;
  bool successor_ = false;
};

} // namespace troupe::testing
