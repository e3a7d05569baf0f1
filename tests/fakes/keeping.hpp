#pragma once

#include "runtime/ports/keeping.hpp"

#include <map>

namespace troupe::testing {

/// A keeper's memory; the test decides when a successor sees it.
class fake_keeping final : public ports::keeping {
 public:
  bool is_successor() override { return successor_; }

  /// The supervisor has crashed: what it kept last is what the next one finds.
  void crash() {
    inherited_ = newest_;
    successor_ = true;
  }

 protected:
  void keep_in(std::uint8_t slot, const messages::any_msg& what) override { newest_[slot] = what; }
  messages::any_msg kept_in(std::uint8_t slot) override { return inherited_[slot]; }

 private:
  std::map<std::uint8_t, messages::any_msg> newest_;
  std::map<std::uint8_t, messages::any_msg> inherited_;
  bool successor_ = false;
};

} // namespace troupe::testing
