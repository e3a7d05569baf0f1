#include "launch/worker/checkpoint_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

checkpoint_memory::checkpoint_memory(std::uint32_t local_ranks, bool for_others)
    : arenas_(std::make_shared<arenas>()), others_(std::make_shared<arenas>()) {
  auto saver = os::wake_event::create();
  auto ledger = os::memory_ledger::make_page();
  if (!saver || !ledger)
    return;
  ledger_ = std::make_shared<os::shared_memory>(std::move(*ledger));
  saver_ = std::make_shared<os::wake_event>(std::move(*saver));
  *arenas_ = make(local_ranks, "ckpt");
  if (for_others)
    *others_ = make(local_ranks, "ckpt-others");
}

checkpoint_memory::arenas checkpoint_memory::make(std::uint32_t local_ranks, const char* name) {
  arenas all;
  for (std::uint32_t local = 0; local < std::min(local_ranks, local_ranks_max); ++local) {
    arena made;
    for (std::size_t i = 0; i <= ckpt::slot_table::slots_max; ++i) {
      auto piece = os::shared_memory::create(fmt::format("troupe-{}-{}-{}", name, local, i),
                                             i == 0 ? sizeof(ckpt::slot_table) : 0);
      if (!piece)
        return all;
      made.push_back(std::move(*piece));
    }
    reinterpret_cast<ckpt::slot_table*>(made.front().data())->local_rank = local;
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<std::vector<int>> checkpoint_memory::descriptors_of(const arenas& all) const {
  std::vector<std::vector<int>> found;
  for (const auto& pieces : all) {
    auto& of_one = found.emplace_back();
    for (const auto& piece : pieces)
      of_one.push_back(piece.descriptor());
    of_one.push_back(ledger_->descriptor());
    of_one.push_back(saver_->descriptor());
  }
  return found;
}

} // namespace troupe::launch
