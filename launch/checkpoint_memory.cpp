#include "launch/checkpoint_memory.hpp"

#include "ckpt/arena/slots.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

checkpoint_memory::checkpoint_memory(std::uint32_t local_ranks)
    : arenas_(std::make_shared<std::vector<arena>>()) {
  auto saver = os::bell::create();
  if (!saver)
    return;
  saver_ = std::make_shared<os::bell>(std::move(*saver));
  for (std::uint32_t local = 0; local < std::min(local_ranks, local_ranks_max); ++local) {
    arena made;
    for (std::size_t i = 0; i <= ckpt::slot_table::slots_max; ++i) {
      auto piece = os::shared_memory::create(fmt::format("troupe-ckpt-{}-{}", local, i),
                                             i == 0 ? sizeof(ckpt::slot_table) : 0);
      if (!piece)
        return;
      made.push_back(std::move(*piece));
    }
    arenas_->push_back(std::move(made));
  }
}

std::vector<std::vector<int>> checkpoint_memory::descriptors() const {
  std::vector<std::vector<int>> all;
  for (const auto& pieces : *arenas_) {
    auto& of_one = all.emplace_back();
    for (const auto& piece : pieces)
      of_one.push_back(piece.descriptor());
    of_one.push_back(saver_->descriptor());
  }
  return all;
}

} // namespace troupe::launch
