#include "ckpt/copies/sending_plan.hpp"

#include "ckpt/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

namespace troupe::ckpt {

namespace {

result<void> sound(const copy_group& by, std::uint64_t snapshot_bytes) {
  const code how{static_cast<std::uint32_t>(by.members.size()), by.parity};
  if (const auto fine = check(how); !fine)
    return fine;
  if (by.me >= how.members)
    return failure(errc::invalid,
                   fmt::format("member {} is not in a group of {}", by.me, how.members));
  if (snapshot_bytes == 0 || snapshot_bytes > limits::copy_snapshot_max)
    return failure(errc::invalid, fmt::format("no image has {} bytes", snapshot_bytes));
  std::set<std::string> addresses;
  for (const auto& m : by.members)
    if (!addresses.insert(m.address).second)
      return failure(errc::invalid, fmt::format("two members of the group are at {}", m.address));
  return {};
}

} // namespace

result<ports::endpoint> target_address(const std::string& text) {
  const auto wrong = failure(errc::invalid, fmt::format("'{}' is no host:port", text));
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return wrong;
  auto host = text.substr(0, colon);
  const bool in_brackets = host.front() == '[' && host.back() == ']';
  if (in_brackets)
    host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (host.empty() || (!in_brackets && host.find_first_of(":[]") != std::string::npos) ||
      read.ec != std::errc{} || read.ptr != end || port == 0)
    return wrong;
  return ports::endpoint{host, port};
}

result<sending_plan> sending_plan::make(const copy_group& by, std::uint64_t snapshot_bytes) {
  if (const auto fine = sound(by, snapshot_bytes); !fine)
    return tl::make_unexpected(fine.error());
  const code how{static_cast<std::uint32_t>(by.members.size()), by.parity};
  sending_plan plan;
  plan.members_.resize(how.members);
  for (std::uint32_t stripe = 0; stripe < how.members; ++stripe) {
    const auto which = piece_of(how, by.me, stripe);
    if (!which)
      continue;
    const auto there = piece_in(how, snapshot_bytes, *which);
    for (std::uint32_t row = 0; row < how.parity; ++row)
      plan.members_[target(how, stripe, row)].pieces.push_back({stripe, there.from, there.bytes});
  }
  // A piece may have nothing in it: its stripe hears of it by CopyBegin.
  for (auto& m : plan.members_)
    while (m.at < m.pieces.size() && m.pieces[m.at].bytes == 0)
      ++m.at;
  return plan;
}

std::vector<std::uint32_t> sending_plan::targets() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t member = 0; member < members_.size(); ++member)
    if (!members_[member].pieces.empty())
      found.push_back(member);
  return found;
}

std::optional<sending_plan::part> sending_plan::next_for(std::uint32_t member) const {
  const auto& m = members_[member];
  if (m.at == m.pieces.size())
    return std::nullopt;
  const auto& p = m.pieces[m.at];
  const auto bytes = std::min<std::uint64_t>(limits::copy_part, p.bytes - m.offset);
  if (m.on_the_way + bytes > limits::copy_window)
    return std::nullopt;
  return part{member, p.stripe, m.offset, p.from + m.offset, bytes};
}

std::optional<sending_plan::part> sending_plan::next() const {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (const auto found = next_for(static_cast<std::uint32_t>((turn_ + i) % members_.size())))
      return found;
  return std::nullopt;
}

void sending_plan::sent(const part& p) {
  auto& m = members_[p.member];
  m.on_the_way += p.bytes;
  m.offset += p.bytes;
  while (m.at < m.pieces.size() && m.offset == m.pieces[m.at].bytes) {
    ++m.at;
    m.offset = 0;
  }
  turn_ = (p.member + 1) % members_.size();
}

bool sending_plan::taken(std::uint32_t member, std::uint64_t bytes) {
  auto& m = members_[member];
  if (bytes > m.on_the_way)
    return false;
  m.on_the_way -= bytes;
  return true;
}

bool sending_plan::all_sent(std::uint32_t member) const {
  return members_[member].at == members_[member].pieces.size();
}

} // namespace troupe::ckpt
