#include "worker/node_share.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::ckpt {

namespace {

/// The slack covers it, and the ledger need not be asked.
constexpr std::uint64_t negligible = 1u << 20;

} // namespace

node_share::node_share(os::memory_ledger ledger, std::size_t rank, std::size_t wanted, slots& words,
                       slot_memory& memory)
    : ledger_(std::move(ledger)), slots_(words), memory_(memory) {
  declared_.rank = std::min<std::size_t>(rank, os::memory_ledger::ranks_max - 1);
  declared_.wanted = static_cast<std::uint32_t>(wanted);
}

/// What tensors hold that were loaded.
std::uint64_t node_share::mapped() const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    all += slots_.word(i).mapped ? memory_[i].backed() : 0;
  return all;
}

result<void> node_share::agree(std::uint64_t bytes) {
  auto d = declared_;
  d.mapped = mapped();
  if (!decided_ || bytes > d.snapshot)
    d.snapshot = with_slack(bytes);
  d.may_raise = !decided_ || d.mapped < declared_.mapped;
  if (!decided_ || d.snapshot != declared_.snapshot || d.mapped != declared_.mapped ||
      ledger_.kept() == 0) {
    d.backed = memory_.backed();
    if (auto asked = ledger_.reserve(d); !asked)
      return asked;
    declared_ = d;
    decided_ = true;
  }
  follow();
  return {};
}

void node_share::follow() {
  const auto kept = std::clamp<std::size_t>(ledger_.kept(), 1, declared_.wanted);
  const auto pressed = ledger_.pressed();
  const auto shed = kept < slots_.snapshots() || pressed != pressed_;
  slots_.keep(kept);
  pressed_ = pressed;
  if (shed)
    give_surplus_back();
}

/// What this process has beyond the snapshots that it keeps, as far as it is not used.
void node_share::give_surplus_back() {
  while (const auto dropped = slots_.drop_surplus())
    give_back(*dropped);
  std::size_t used = 0;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (const auto word = slots_.word(i); word.state != slot_state::empty && !word.mapped)
      ++used;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (const auto word = slots_.word(i); word.state == slot_state::empty && !word.mapped &&
                                          memory_[i].bytes() != 0 && ++used > slots_.snapshots())
      give_back(i);
}

void node_share::give_back(std::size_t slot) {
  // If that fails the memory is there still, and is counted.
  [[maybe_unused]] const auto cleared = memory_.clear(slot);
  account();
}

result<void> node_share::reserve(std::uint64_t more) {
  auto d = declared_;
  d.backed = memory_.backed();
  d.more = more;
  d.may_raise = false;
  if (auto asked = ledger_.reserve(d); !asked)
    return asked;
  touching_until_ = d.backed + more;
  return {};
}

void node_share::account() {
  const auto now = memory_.backed(), until = touching_until_.load();
  ledger_.account(declared_.rank, now, until - std::min(until, now));
}

void node_share::nothing_in_transit() {
  if (!memory_.filling() && !saving_)
    touching_until_ = 0;
  account();
}

void node_share::touched() {
  saving_ = false;
  nothing_in_transit();
}

result<void> node_share::fit(std::size_t slot, std::uint64_t bytes) {
  // Before it is asked what is being filled: if that ends now, this save touches the rest of it.
  saving_ = true;
  const auto is_there =
      memory_.missing(slot, bytes) <= negligible && memory_[slot].bytes() >= bytes;
  if (memory_.fills(slot, bytes) || is_there)
    return {};
  memory_.stop_filling();
  auto asked = reserve(memory_.missing(slot, bytes));
  if (!asked)
    touched();
  return asked;
}

/// The empty slots that are the next to be used until all are that are kept, with leave to touch
/// all of them.
result<std::vector<std::size_t>> node_share::reserve_empty_slots(std::uint64_t bytes) {
  for (;;) {
    const auto kept = slots_.snapshots();
    std::size_t used = 0;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < slots_.count(); ++i)
      if (const auto word = slots_.word(i); word.mapped)
        continue;
      else if (word.state == slot_state::empty)
        found.push_back(i);
      else
        ++used;
    std::stable_partition(found.begin(), found.end(),
                          [there = memory_.with_pages()](auto i) { return there[i]; });
    found.resize(std::min(found.size(), kept - std::min(kept, used)));
    const auto more =
        std::accumulate(found.begin(), found.end(), std::uint64_t{0},
                        [&](std::uint64_t sum, auto i) { return sum + memory_.missing(i, bytes); });
    if (const auto asked = reserve(more); !asked)
      return tl::make_unexpected(asked.error());
    follow();
    if (slots_.snapshots() >= kept)
      return found;
  }
}

result<void> node_share::prepare(std::uint64_t bytes, std::vector<bytes_at> storages) {
  if (auto agreed = agree(bytes); !agreed)
    return agreed;
  auto which = reserve_empty_slots(bytes);
  if (!which) {
    nothing_in_transit();
    return tl::make_unexpected(which.error());
  }
  for (const auto slot : *which)
    if (auto made = memory_.enlarge(slot, bytes); !made) {
      nothing_in_transit();
      return made;
    }
  memory_.fill(std::move(*which), bytes, slots_, std::move(storages),
               {[this, kept = ledger_.kept()] {
                  account();
                  return ledger_.kept() >= kept; // else another rank needs it
                },
                [this] { nothing_in_transit(); }});
  return {};
}

} // namespace troupe::ckpt
