#pragma once

#include "runtime/base/result.hpp"
#include "runtime/tcpstore/budget.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::tcpstore {

/// Keys with values, and queues; each name may be both. Counters are values in decimal.
///
/// Ordered, so that a list of keys is the same on every machine and a client cannot make it slow by
/// choosing keys. What would exceed the budget fails with `overloaded` and changes nothing.
class keyspace {
 public:
  explicit keyspace(budget& of) : budget_(of) {}

  /// Null if there is no such key. Valid until the next change.
  const std::string* find(std::string_view key) const;

  result<void> set(std::string_view key, std::string_view value);

  /// Sets `desired` if the value is `expected`, or the key is missing and `expected` empty. Says
  /// what is there then; for a missing key that stays missing it echoes `expected`, as torch does.
  struct comparison {
    std::string_view now; ///< valid until the next change, or as long as the arguments
    bool stored = false;
  };
  result<comparison> compare_set(std::string_view key, std::string_view expected,
                                 std::string_view desired);

  /// A missing key counts as 0; what follows the digits of a value is ignored and a sum beyond 64
  /// bits wraps, as with torch. `invalid` if the value is no number.
  result<std::int64_t> add(std::string_view key, std::int64_t delta);

  /// `overloaded` also if a value would become too large to be answered.
  result<void> append(std::string_view key, std::string_view value);

  bool erase(std::string_view key);

  std::size_t size() const { return keys_.size(); }
  /// What a list of all keys takes, without its count.
  std::size_t listed_bytes() const { return key_bytes_ + sizeof(std::uint64_t) * keys_.size(); }
  void for_each_key(const std::function<void(std::string_view)>& told) const;

  result<void> push(std::string_view queue, std::string_view value);
  std::optional<std::string> pop(std::string_view queue);
  std::size_t length(std::string_view queue) const;

 private:
  using values = std::map<std::string, std::string, std::less<>>;

  result<void> insert(std::string_view key, std::string value);
  result<void> replace(std::string& old, std::string_view value);
  tl::unexpected<error> full() const;

  budget& budget_;
  values keys_;
  std::size_t key_bytes_ = 0;
  std::map<std::string, std::deque<std::string>, std::less<>> queues_; ///< none is empty
};

} // namespace troupe::tcpstore
