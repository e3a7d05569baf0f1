#include "runtime/os/copies/piece_memory.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace troupe::ckpt {

namespace {

std::size_t in_use(const slots& words) {
  std::size_t count = 0;
  for (std::size_t slot = 0; slot < slots::count(); ++slot)
    count += words.word(slot).state == slot_state::empty ? 0 : 1;
  return count;
}

/// The same for all local ranks.
result<os::memory_ledger> ledger_of(const std::vector<std::vector<int>>& arenas) {
  auto page = arenas.empty() ? os::memory_ledger::make_page()
                             : os::shared_memory::share(arenas.front().at(arena_ledger));
  if (!page)
    return tl::make_unexpected(page.error());
  return os::memory_ledger::open(std::move(*page));
}

} // namespace

result<piece_memory> piece_memory::map(const std::vector<std::vector<int>>& arenas) {
  auto ledger = ledger_of(arenas);
  if (!ledger)
    return tl::make_unexpected(ledger.error());
  piece_memory all(std::move(*ledger));
  for (const auto& descriptors : arenas) {
    auto opened = os::snapshot_memory::open(descriptors);
    if (!opened)
      return tl::make_unexpected(opened.error());
    auto& one = all.arenas_.emplace_back();
    one.own = std::move(*opened);
    if (one.words().formatted())
      one.words().writer_died();
    else
      one.words().format();
    all.count(one);
  }
  all.ledger_.account_replicas(all.backed_, all.reserved_);
  return all;
}

/// What a supervisor that came before this one has left.
void piece_memory::count(arena& one) {
  for (std::size_t slot = 0; slot < one.backed.size(); ++slot) {
    one.backed[slot] = os::shared_memory::backed(one.own.descriptor(slot));
    backed_ += one.backed[slot];
    reserved_ += os::shared_memory::size(one.own.descriptor(slot));
  }
}

/// What was touched is no promise any more: the node's room is less by that.
void piece_memory::account(const parity& p) {
  auto& known = arenas_[p.local].backed.at(p.slot);
  const auto now = os::shared_memory::backed(arenas_[p.local].own.descriptor(p.slot));
  backed_ = backed_ - known + now;
  known = now;
  ledger_.account_replicas(backed_, reserved_);
}

result<void> piece_memory::open(const target_core::open& o) {
  auto words = arenas_.at(o.local).words();
  const auto piece_in = [&](std::size_t which) { return this->piece_in({o.local, which}); };
  auto slot = words.begin_where([&](std::size_t which) {
    return o.may_replace(words.snapshot(which)) || is_given_again(words, which, piece_in);
  });
  if (!slot)
    slot =
        words.begin_where([&](std::size_t which) { return o.may_displace(words.snapshot(which)); });
  if (!slot)
    return failure(errc::refused, fmt::format("the memory for others' images of local rank {} "
                                              "holds {} pieces that may not go",
                                              o.local, in_use(words)));
  const parity p{o.local, *slot};
  if (const auto made = lay_out(p, o.bytes); !made) {
    words.abandon(*slot);
    return made;
  }
  open_.emplace(o.which, p);
  return {};
}

result<void> piece_memory::map_slot(const parity& p) {
  auto& memory = memory_of(p);
  if (memory)
    return {};
  auto made = arenas_[p.local].own.map(p.slot);
  if (!made)
    return tl::make_unexpected(made.error());
  memory = std::move(*made);
  return {};
}

const held_piece* piece_memory::piece_in(const parity& p) {
  if (!map_slot(p) || memory_of(p).bytes() < sizeof(held_piece))
    return nullptr;
  const auto* const held = reinterpret_cast<const held_piece*>(memory_of(p).data());
  return held->magic == held_piece::magic_value ? held : nullptr;
}

/// What was there before is no piece any more, whatever becomes of this one.
result<void> piece_memory::lay_out(const parity& p, std::uint64_t bytes) {
  if (auto mapped = map_slot(p); !mapped)
    return mapped;
  if (const auto made = make_room(p, bytes); !made)
    return made;
  std::memset(memory_of(p).data(), 0, held_piece::bytes_before);
  return {};
}

result<void> piece_memory::make_room(const parity& p, std::uint64_t bytes) {
  auto& memory = memory_of(p);
  if (bytes <= memory.bytes())
    return {};
  const auto more = bytes - memory.bytes();
  if (const auto asked = ledger_.reserve_replicas(backed_, more); !asked)
    return failure(asked.error().code,
                   fmt::format("a copy for local rank {}: {}", p.local, asked.error().what));
  const auto grown = memory.grow(bytes);
  if (grown)
    reserved_ += more;
  account(p);
  return grown;
}

result<void> piece_memory::grow(const target_core::grow& g) {
  const auto at = open_.find(g.which);
  return at == open_.end() ? result<void>{} : make_room(at->second, g.bytes);
}

void piece_memory::add(const target_core::add& a) {
  const auto at = open_.find(a.which);
  if (at == open_.end())
    return;
  auto part = a.message.read();
  const auto content = part->getContent();
  const auto* const from = reinterpret_cast<const char*>(content.begin());
  const auto end = a.offset + content.size();
  const auto& memory = memory_of(at->second);
  invariant(held_piece::bytes_before + end <= memory.bytes(), "a parity longer than its memory");
  auto* const sum = memory.data() + held_piece::bytes_before;
  if (a.fresh <= a.offset && a.times == 1) {
    std::memcpy(sum + a.offset, from, content.size());
    return account(at->second);
  }
  if (a.fresh < end)
    std::memset(sum + std::max(a.fresh, a.offset), 0, end - std::max(a.fresh, a.offset));
  accumulate(sum + a.offset, from, content.size(), a.times);
  account(at->second);
}

void piece_memory::finish(const target_core::finish& f) {
  auto done = open_.extract(f.which);
  if (done.empty())
    return;
  const auto& p = done.mapped();
  auto* const header = new (memory_of(p).data()) held_piece(f.header);
  // A reader that finds the magic finds all that was written before it.
  header->magic = 0;
  std::atomic_thread_fence(std::memory_order_release);
  header->magic = held_piece::magic_value;
  arenas_[p.local].words().finish(p.slot, f.snapshot);
}

void piece_memory::drop(const target_core::drop& d) {
  const auto gone = open_.extract(d.which);
  if (!gone.empty())
    arenas_[gone.mapped().local].words().abandon(gone.mapped().slot);
}

void piece_memory::drop_all() {
  for (const auto& [id, p] : open_)
    arenas_[p.local].words().abandon(p.slot);
  open_.clear();
}

} // namespace troupe::ckpt
