#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "runtime/ports/keeping.hpp"

namespace troupe::launch {

/// Messages at the keeper's first places. What does not fit is not kept: a successor then finds
/// nothing there, and ends what it cannot adopt.
class kept_messages final : public ports::keeping {
 public:
  explicit kept_messages(keeper_client& keeper) : keeper_(keeper) {}

  void keep(ports::kept_as place, const messages::any_msg& what) override;
  messages::any_msg kept(ports::kept_as place) override;
  bool is_successor() override { return keeper_.earlier_lives() > 0; }

 private:
  keeper_client& keeper_;
};

/// The first place that is free for others.
inline constexpr std::size_t first_place_of_others = 2;

} // namespace troupe::launch
