#include "ckpt/copy/blocks.hpp"

#include <algorithm>

namespace troupe::ckpt {

namespace {

std::uint64_t number(const char* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

/// How far it is from `at` to the next multiple of `unit`; 0 if it is one.
std::uint64_t to_next(const char* at, std::uint64_t unit) {
  return (unit - number(at) % unit) % unit;
}

} // namespace

block_plan block_plan::divide(const std::vector<piece>& pieces) {
  block_plan plan;
  auto sorted = pieces;
  std::sort(sorted.begin(), sorted.end(),
            [](const piece& a, const piece& b) { return number(a.from) < number(b.from); });
  for (const auto& p : sorted) {
    const auto head = to_next(p.from, page_bytes);
    const auto tail = number(p.from + p.bytes) % page_bytes;
    if (p.bytes < least_bytes) {
      plan.at_once.push_back(p);
      continue;
    }
    plan.at_once.push_back({p.to, p.from, head});
    plan.at_once.push_back({p.to + p.bytes - tail, p.from + p.bytes - tail, tail});
    // The owner writes there: only to us it is constant.
    auto* const begin = const_cast<char*>(p.from) + head;
    auto* const end = const_cast<char*>(p.from) + p.bytes - tail;
    range r{begin, end, plan.blocks.size(), 0};
    for (auto* at = begin; at != end;) {
      const auto whole = to_next(at, block_bytes);
      const auto bytes =
          std::min<std::uint64_t>(whole != 0 ? whole : block_bytes, number(end) - number(at));
      plan.blocks.push_back({at, p.to + (at - p.from), bytes});
      at += bytes;
    }
    r.blocks = plan.blocks.size() - r.first_block;
    plan.ranges.push_back(r);
  }
  return plan;
}

std::optional<std::size_t> block_plan::find(const char* address) const {
  const auto behind =
      std::upper_bound(blocks.begin(), blocks.end(), address,
                       [](const char* at, const block& b) { return number(at) < number(b.from); });
  if (behind == blocks.begin())
    return std::nullopt;
  const auto& b = *(behind - 1);
  if (number(address) >= number(b.from) + b.bytes)
    return std::nullopt;
  return static_cast<std::size_t>(behind - 1 - blocks.begin());
}

} // namespace troupe::ckpt
