#pragma once

#include "runtime/tcpstore/wire.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What clients send, as bytes: the other side of runtime/tcpstore/wire.
namespace troupe::tcpstore::testing {

inline std::string op(operation o) {
  return std::string(1, static_cast<char>(o));
}
/// As clients without VALIDATE number it.
inline std::string old_op(std::uint8_t number) {
  return std::string(1, static_cast<char>(number));
}
inline std::string u32(std::uint32_t n) {
  std::string s;
  put_u32(s, n);
  return s;
}
inline std::string i64(std::int64_t n) {
  std::string s;
  put_i64(s, n);
  return s;
}
inline std::string text(std::string_view t) {
  std::string s;
  put_text(s, t);
  return s;
}
inline std::string texts(std::initializer_list<std::string_view> all) {
  auto s = i64(static_cast<std::int64_t>(all.size()));
  for (const auto t : all)
    s += text(t);
  return s;
}

inline std::string hello() {
  return op(operation::validate) + u32(validation_magic);
}
inline std::string ping(std::uint32_t nonce) {
  return op(operation::ping) + u32(nonce);
}
inline std::string set(std::string_view key, std::string_view value) {
  return op(operation::set) + text(key) + text(value);
}
inline std::string get(std::string_view key) {
  return op(operation::get) + text(key);
}
inline std::string add(std::string_view key, std::int64_t n) {
  return op(operation::add) + text(key) + i64(n);
}
inline std::string append(std::string_view key, std::string_view value) {
  return op(operation::append) + text(key) + text(value);
}
inline std::string compare_set(std::string_view key, std::string_view expected,
                               std::string_view desired) {
  return op(operation::compare_set) + text(key) + text(expected) + text(desired);
}
inline std::string check(std::initializer_list<std::string_view> keys) {
  return op(operation::check) + texts(keys);
}
inline std::string wait(std::initializer_list<std::string_view> keys) {
  return op(operation::wait) + texts(keys);
}
inline std::string cancel() {
  return op(operation::cancel_wait);
}
inline std::string multi_get(std::initializer_list<std::string_view> keys) {
  return op(operation::multi_get) + texts(keys);
}
inline std::string
multi_set(std::initializer_list<std::pair<std::string_view, std::string_view>> all) {
  auto s = op(operation::multi_set) + i64(static_cast<std::int64_t>(all.size()));
  for (const auto& [key, value] : all)
    s += text(key) + text(value);
  return s;
}
inline std::string erase(std::string_view key) {
  return op(operation::delete_key) + text(key);
}
inline std::string push(std::string_view queue, std::string_view value) {
  return op(operation::queue_push) + text(queue) + text(value);
}
inline std::string pop(std::string_view queue) {
  return op(operation::queue_pop) + text(queue);
}
inline std::string length(std::string_view queue) {
  return op(operation::queue_len) + text(queue);
}
inline std::string barrier(std::string_view key, std::int64_t world) {
  return op(operation::barrier) + text(key) + i64(world);
}

} // namespace troupe::tcpstore::testing
