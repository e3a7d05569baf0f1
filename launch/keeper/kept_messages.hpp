#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "runtime/ports/keeping.hpp"

namespace troupe::launch {

/// Messages in the keeper's slots. What does not fit is not kept: a successor then finds nothing
/// there, and ends what it cannot adopt.
class kept_messages final : public ports::keeping {
 public:
  explicit kept_messages(keeper_client& keeper) : keeper_(keeper) {}

  bool is_successor() override { return keeper_.earlier_lives() > 0; }

 protected:
  void keep_in(std::uint8_t slot, const messages::any_msg& what) override;
  messages::any_msg kept_in(std::uint8_t slot) override;

 private:
  keeper_client& keeper_;
};

} // namespace troupe::launch
