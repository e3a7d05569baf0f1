#include "tests/sim/piece_memory.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::sim {

using ckpt::held_piece;

sim_piece_memory::arena& sim_piece_memory::arena_of(local_rank local) {
  auto& one = arenas_[local];
  if (!one) {
    one = std::make_unique<arena>();
    one->words().format();
  }
  return *one;
}

result<void> sim_piece_memory::open(const ckpt::target_core::open& o) {
  auto words = arena_of(o.local).words();
  const auto& pieces = arena_of(o.local).memory;
  const auto piece_in = [&pieces](std::size_t which) {
    return reinterpret_cast<const held_piece*>(pieces[which].data());
  };
  auto slot = words.begin_where([&](std::size_t which) {
    return o.may_replace(words.snapshot(which)) || ckpt::is_given_again(words, which, piece_in);
  });
  if (!slot)
    slot =
        words.begin_where([&](std::size_t which) { return o.may_displace(words.snapshot(which)); });
  if (!slot)
    return failure(errc::refused, fmt::format("the memory for others' images of local rank {} "
                                              "holds nothing that may go",
                                              o.local));
  const parity p{o.local, *slot};
  open_.emplace(o.which, p);
  auto& memory = memory_of(p);
  memory.resize(std::max<std::size_t>(memory.size(), o.bytes));
  std::fill_n(memory.begin(), held_piece::bytes_before, '\0');
  return {};
}

void sim_piece_memory::grow(const ckpt::target_core::grow& g) {
  if (const auto at = open_.find(g.which); at != open_.end()) {
    auto& memory = memory_of(at->second);
    memory.resize(std::max<std::size_t>(memory.size(), g.bytes));
  }
}

void sim_piece_memory::add(const ckpt::target_core::add& a) {
  const auto at = open_.find(a.which);
  if (at == open_.end())
    return;
  auto part = a.message.read();
  const auto content = part->getContent();
  const auto end = a.offset + content.size();
  auto& memory = memory_of(at->second);
  invariant(held_piece::bytes_before + end <= memory.size(), "a parity longer than its memory");
  auto* const sum = memory.data() + held_piece::bytes_before;
  if (a.fresh < end)
    std::fill(sum + std::max(a.fresh, a.offset), sum + end, '\0');
  ckpt::accumulate(sum + a.offset, reinterpret_cast<const char*>(content.begin()), content.size(),
                   a.times);
}

void sim_piece_memory::finish(const ckpt::target_core::finish& f) {
  const auto done = open_.extract(f.which);
  if (done.empty())
    return;
  const auto& p = done.mapped();
  std::memcpy(memory_of(p).data(), &f.header, sizeof f.header);
  arena_of(p.local).words().finish(p.slot, f.snapshot);
}

void sim_piece_memory::drop(const ckpt::target_core::drop& d) {
  const auto gone = open_.extract(d.which);
  if (!gone.empty())
    arena_of(gone.mapped().local).words().abandon(gone.mapped().slot);
}

void sim_piece_memory::writer_died() {
  open_.clear();
  for (const auto& [local, one] : arenas_)
    one->words().writer_died();
}

std::vector<sim_piece_memory::piece> sim_piece_memory::pieces(local_rank local) const {
  std::vector<piece> found;
  const auto at = arenas_.find(local);
  if (at == arenas_.end())
    return found;
  const auto words = at->second->words();
  for (const auto slot : words.oldest_first()) {
    const auto word = words.word(slot);
    if (word.state != ckpt::slot_state::ready)
      continue;
    auto& one = found.emplace_back(piece{slot, word.sequence, words.snapshot(slot), {}});
    std::memcpy(&one.header, at->second->memory[slot].data(), sizeof one.header);
  }
  return found;
}

const std::string* sim_piece_memory::bytes_of(local_rank local, std::size_t slot,
                                              std::uint64_t sequence) const {
  const auto at = arenas_.find(local);
  if (at == arenas_.end())
    return nullptr;
  const auto word = at->second->words().word(slot);
  const bool there = word.state == ckpt::slot_state::ready && word.sequence == sequence;
  return there ? &at->second->memory.at(slot) : nullptr;
}

} // namespace troupe::sim
