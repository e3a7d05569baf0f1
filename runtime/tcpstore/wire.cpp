#include "runtime/tcpstore/wire.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/tcpstore/limits.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace troupe::tcpstore {

namespace {

/// As it stands on the wire, whatever this machine's own order is.
template<class N>
N number_at(std::string_view bytes, std::size_t at) {
  N n = 0;
  for (std::size_t i = 0; i < sizeof(N); ++i)
    n |= static_cast<N>(static_cast<N>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
  return n;
}

template<class N>
void put(std::string& out, N n) {
  std::array<char, sizeof(N)> bytes{};
  for (auto& b : bytes) {
    b = static_cast<char>(n & 0xff);
    n = static_cast<N>(n >> (sizeof(N) > 1 ? 8 : 0));
  }
  out.append(bytes.data(), bytes.size());
}

constexpr std::size_t operations = 19;
constexpr std::array<const char*, operations> names = {
    "validate",   "set",        "compare_set", "get",       "add",       "check",       "wait",
    "num_keys",   "delete_key", "append",      "multi_get", "multi_set", "cancel_wait", "ping",
    "queue_push", "queue_pop",  "queue_len",   "list_keys", "barrier"};

} // namespace

const char* to_string(operation o) {
  return names.at(static_cast<std::size_t>(o));
}

const char* to_string(dialect d) {
  switch (d) {
  case dialect::unknown:
    return "unknown";
  case dialect::validated:
    return "torch 2.2 or newer";
  case dialect::torch_2_1:
    return "torch 2.1";
  case dialect::older:
    return "torch 2.1 or older";
  }
  return "";
}

std::string_view fields::next() {
  const auto size = static_cast<std::size_t>(number_at<std::uint64_t>(rest_, 0));
  const auto text = rest_.substr(8, size);
  rest_.remove_prefix(8 + size);
  return text;
}

// ---- the shape of each request ----

struct reader::shape {
  std::array<field, 4> fields;
};

const reader::shape& reader::shape_of(operation o) {
  using f = field;
  static constexpr std::array<shape, operations> all = {{
      {{f::number32}},                // validate
      {{f::key, f::value}},           // set
      {{f::key, f::value, f::value}}, // compare_set
      {{f::key}},                     // get
      {{f::key, f::number64}},        // add
      {{f::keys}},                    // check
      {{f::keys}},                    // wait
      {{}},                           // num_keys
      {{f::key}},                     // delete_key
      {{f::key, f::value}},           // append
      {{f::keys}},                    // multi_get
      {{f::pairs}},                   // multi_set
      {{}},                           // cancel_wait
      {{f::number32}},                // ping
      {{f::key, f::value}},           // queue_push
      {{f::key}},                     // queue_pop
      {{f::key}},                     // queue_len
      {{}},                           // list_keys
      {{f::key, f::number64}},        // barrier
  }};
  return all.at(static_cast<std::size_t>(o));
}

// ---- reading ----

reader::status reader::refuse(std::string why) {
  why_ = std::move(why);
  return status::violation;
}

bool reader::lacks(std::string_view bytes, std::size_t more) {
  needed_ = at_ + more;
  return bytes.size() < needed_;
}

reader::status reader::read(std::string_view bytes, request& out) {
  if (!begun_)
    if (const auto s = begin(bytes); s != status::complete)
      return s;
  const auto& all = shape_of(what_).fields;
  for (; all[field_] != field::none; ++field_)
    if (const auto s = take(bytes, all[field_]); s != status::complete)
      return s;
  out.what = what_;
  out.key = bytes.substr(key_.at, key_.size);
  out.value = bytes.substr(value_.at, value_.size);
  out.expected = bytes.substr(expected_.at, expected_.size);
  out.list = bytes.substr(list_.at, list_.size);
  out.number = number_;
  out.count = count_;
  if (what_ == operation::validate && number_ != validation_magic)
    return refuse("its magic number is wrong");
  size_ = at_;
  at_ = 0;
  begun_ = first_ = false;
  needed_ = 1;
  return status::complete;
}

/// Reads the operation, and before the first one the client's dialect.
reader::status reader::begin(std::string_view bytes) {
  at_ = 0;
  if (lacks(bytes, 1))
    return status::incomplete;
  const auto number = static_cast<std::uint8_t>(bytes[0]);
  if (dialect_ == dialect::unknown) {
    // 0 is VALIDATE now and was SET once, whose key cannot be as long as the magic number says.
    if (number == 0) {
      if (lacks(bytes, 1 + sizeof(std::uint32_t)))
        return status::incomplete;
      dialect_ = number_at<std::uint32_t>(bytes, 1) == validation_magic ? dialect::validated
                                                                        : dialect::older;
    } else {
      dialect_ = dialect::older;
    }
  }
  if (const auto s = translate(number); s != status::complete)
    return s;
  begun_ = true;
  in_list_ = false;
  field_ = 0;
  at_ = 1;
  key_ = value_ = expected_ = list_ = span{};
  number_ = 0;
  count_ = 0;
  return status::complete;
}

reader::status reader::translate(std::uint8_t number) {
  if (dialect_ != dialect::validated)
    return translate_older(number);
  what_ = static_cast<operation>(number);
  if (number >= operations || (what_ == operation::validate && !first_))
    return refuse(fmt::format("there is no operation {}", number));
  return status::complete;
}

/// Without VALIDATE numbers are one less. 2.1 ends at CANCEL_WAIT; before it 7 was WATCH_KEY, on a
/// connection of its own, and 8 DELETE_KEY, the last one.
reader::status reader::translate_older(std::uint8_t number) {
  constexpr std::uint8_t watch_or_delete = 7, delete_or_append = 8, last = 11;
  if (number > last)
    return refuse(
        first_ ? fmt::format("it is no client of any torch known here (first byte {})", number)
               : fmt::format("there is no operation {} in {}", number, to_string(dialect_)));
  if (dialect_ == dialect::older) {
    if (number == delete_or_append || (number == watch_or_delete && first_))
      return refuse(
          fmt::format("operation {} of a client without VALIDATE means one thing in torch "
                      "2.1 and another before it, and which this is cannot be told",
                      number));
    if (number >= watch_or_delete)
      dialect_ = dialect::torch_2_1;
  }
  what_ = static_cast<operation>(number + 1);
  return status::complete;
}

bool reader::at_cancel_wait(std::string_view bytes) const {
  const int shift = dialect_ == dialect::validated ? 0 : 1;
  return static_cast<unsigned char>(bytes[0]) + shift == static_cast<int>(operation::cancel_wait);
}

reader::status reader::take(std::string_view bytes, field f) {
  switch (f) {
  case field::key:
    return take_text(bytes, limits::store_key_max, "key", key_);
  case field::value:
    // compare_set has two: what is expected, then what is desired.
    expected_ = value_;
    return take_text(bytes, limits::store_value_max, "value", value_);
  case field::number32:
    if (lacks(bytes, sizeof(std::uint32_t)))
      return status::incomplete;
    number_ = number_at<std::uint32_t>(bytes, at_);
    at_ += sizeof(std::uint32_t);
    return status::complete;
  case field::number64:
    if (lacks(bytes, sizeof(std::uint64_t)))
      return status::incomplete;
    number_ = static_cast<std::int64_t>(number_at<std::uint64_t>(bytes, at_));
    at_ += sizeof(std::uint64_t);
    return status::complete;
  case field::keys:
  case field::pairs:
    return take_list(bytes, f == field::pairs);
  case field::none:
    break;
  }
  return status::complete;
}

reader::status reader::take_text(std::string_view bytes, std::size_t max, const char* name,
                                 span& where) {
  if (lacks(bytes, sizeof(std::uint64_t)))
    return status::incomplete;
  const auto size = number_at<std::uint64_t>(bytes, at_);
  if (size > max)
    return refuse(first_ && dialect_ == dialect::older
                      ? std::string("it is no client of any torch known here")
                      : fmt::format("a {} of {} bytes; {} are allowed", name, size, max));
  const auto whole = sizeof(std::uint64_t) + static_cast<std::size_t>(size);
  if (at_ + whole > limits::store_request_max)
    return refuse(fmt::format("a request of more than {} bytes", limits::store_request_max));
  if (lacks(bytes, whole))
    return status::incomplete;
  where = {at_ + sizeof(std::uint64_t), static_cast<std::size_t>(size)};
  at_ += whole;
  return status::complete;
}

reader::status reader::take_list(std::string_view bytes, bool pairs) {
  if (!in_list_) {
    if (lacks(bytes, sizeof(std::uint64_t)))
      return status::incomplete;
    count_ = number_at<std::uint64_t>(bytes, at_);
    if (count_ > limits::store_keys_per_request_max)
      return refuse(fmt::format("{} keys in one request; {} are allowed", count_,
                                limits::store_keys_per_request_max));
    at_ += sizeof(std::uint64_t);
    list_ = {at_, 0};
    texts_left_ = pairs ? 2 * count_ : count_;
    in_list_ = true;
  }
  for (; texts_left_ > 0; --texts_left_) {
    const bool is_value = pairs && texts_left_ % 2 == 1;
    span ignored;
    const auto s = is_value ? take_text(bytes, limits::store_value_max, "value", ignored)
                            : take_text(bytes, limits::store_key_max, "key", ignored);
    if (s != status::complete)
      return s;
  }
  list_.size = at_ - list_.at;
  return status::complete;
}

// ---- writing ----

void put_u8(std::string& out, std::uint8_t n) {
  out.push_back(static_cast<char>(n));
}
void put_u32(std::string& out, std::uint32_t n) {
  put(out, n);
}
void put_i64(std::string& out, std::int64_t n) {
  put(out, static_cast<std::uint64_t>(n));
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out.append(text);
}

} // namespace troupe::tcpstore
