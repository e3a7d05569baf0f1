#include "runtime/tcpstore/keyspace.hpp"

#include "runtime/tcpstore/limits.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace troupe::tcpstore {

namespace {

std::size_t cost_of(std::string_view key, std::string_view value) {
  return key.size() + value.size() + budget::node_cost;
}

/// A value that is appended to gets room for this part of it, so that it is not copied each time.
constexpr std::size_t growth_part = 8;

/// A value that can grow: its memory counts, which may be more than its bytes.
std::size_t cost_with_room(std::string_view key, const std::string& value) {
  return key.size() + value.capacity() + budget::node_cost;
}

/// As C's strtoll reads it: white space, a sign, digits, and whatever follows.
std::optional<std::int64_t> leading_number(std::string_view text) {
  const auto start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos)
    return std::nullopt;
  text.remove_prefix(start);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-')
    text.remove_prefix(1);
  std::int64_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  return read.ec == std::errc{} ? std::optional(n) : std::nullopt;
}

} // namespace

tl::unexpected<error> keyspace::full() const {
  return failure(errc::overloaded,
                 fmt::format("the store would hold more than {} bytes", budget_.limit()));
}

const std::string* keyspace::find(std::string_view key) const {
  const auto at = keys_.find(key);
  return at == keys_.end() ? nullptr : &at->second;
}

result<void> keyspace::insert(std::string_view key, std::string value) {
  if (!budget_.take(cost_with_room(key, value)))
    return full();
  key_bytes_ += key.size();
  keys_.emplace(key, std::move(value));
  return {};
}

result<void> keyspace::replace(std::string& old, std::string_view value) {
  // A large value's memory is not kept for a small one.
  const bool fits =
      value.size() <= old.capacity() && old.capacity() <= 2 * value.size() + budget::node_cost;
  if (fits) {
    old.assign(value);
    return {};
  }
  std::string fresh(value);
  if (!budget_.change(old.capacity(), fresh.capacity()))
    return full();
  old.swap(fresh); // a move might keep the larger memory
  return {};
}

result<void> keyspace::set(std::string_view key, std::string_view value) {
  const auto at = keys_.find(key);
  return at == keys_.end() ? insert(key, std::string(value)) : replace(at->second, value);
}

result<keyspace::comparison> keyspace::compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) {
  const auto at = keys_.find(key);
  if (at == keys_.end() && !expected.empty())
    return comparison{expected, false};
  if (at != keys_.end() && at->second != expected)
    return comparison{at->second, false};
  if (auto done = set(key, desired); !done)
    return tl::make_unexpected(done.error());
  return comparison{desired, true};
}

result<std::int64_t> keyspace::add(std::string_view key, std::int64_t delta) {
  const auto at = keys_.find(key);
  auto sum = static_cast<std::uint64_t>(delta);
  if (at != keys_.end()) {
    const auto before = leading_number(at->second);
    if (!before)
      return failure(errc::invalid, "it wants to add to a value that is no number");
    sum += static_cast<std::uint64_t>(*before);
  }
  const auto after = static_cast<std::int64_t>(sum);
  const fmt::format_int text(after);
  const std::string_view value(text.data(), text.size());
  const auto done =
      at == keys_.end() ? insert(key, std::string(value)) : replace(at->second, value);
  if (!done)
    return tl::make_unexpected(done.error());
  return after;
}

result<void> keyspace::append(std::string_view key, std::string_view value) {
  const auto at = keys_.find(key);
  if (at == keys_.end())
    return insert(key, std::string(value));
  if (at->second.size() + value.size() + sizeof(std::uint64_t) > limits::store_answer_max)
    return failure(errc::overloaded,
                   fmt::format("a value would grow beyond {} bytes", limits::store_answer_max));
  auto& old = at->second;
  const auto needed = old.size() + value.size();
  if (needed <= old.capacity()) {
    old.append(value);
    return {};
  }
  // Left to itself a string takes twice what it needs, and the store twice its bound.
  std::string grown;
  grown.reserve(needed + needed / growth_part);
  if (!budget_.change(old.capacity(), grown.capacity()))
    return full();
  grown.append(old).append(value);
  old.swap(grown);
  return {};
}

bool keyspace::erase(std::string_view key) {
  const auto at = keys_.find(key);
  if (at == keys_.end())
    return false;
  budget_.give(cost_with_room(at->first, at->second));
  key_bytes_ -= at->first.size();
  keys_.erase(at);
  return true;
}

void keyspace::for_each_key(const std::function<void(std::string_view)>& told) const {
  for (const auto& [key, value] : keys_)
    told(key);
}

result<void> keyspace::push(std::string_view queue, std::string_view value) {
  if (!budget_.take(cost_of(queue, value)))
    return full();
  const auto at = queues_.find(queue);
  if (at == queues_.end())
    queues_.emplace(queue, std::deque<std::string>{std::string(value)});
  else
    at->second.emplace_back(value);
  return {};
}

std::optional<std::string> keyspace::pop(std::string_view queue) {
  const auto at = queues_.find(queue);
  if (at == queues_.end())
    return std::nullopt;
  auto first = std::move(at->second.front());
  budget_.give(cost_of(at->first, first));
  at->second.pop_front();
  if (at->second.empty())
    queues_.erase(at);
  return first;
}

std::size_t keyspace::length(std::string_view queue) const {
  const auto at = queues_.find(queue);
  return at == queues_.end() ? 0 : at->second.size();
}

} // namespace troupe::tcpstore
