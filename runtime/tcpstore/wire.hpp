#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// PyTorch's TCPStore protocol, as bytes. Source of the format: torch/csrc/distributed/c10d,
/// TCPStoreBackend.hpp (operations and magic number), TCPStore.cpp (what clients send) and
/// TCPStoreLibUvBackend.cpp (what a server answers, and the limits), of releases 1.13 to 2.13.
///
/// A request is an operation (one byte) and its fields; a string or value is its length (u64) and
/// that many bytes. Numbers are little endian. There are no request ids: answers follow the order
/// of requests.
namespace troupe::tcpstore {

/// As releases from 2.2 number them.
enum class operation : std::uint8_t {
  validate,    ///< u32 magic. No answer.
  set,         ///< key, value. No answer.
  compare_set, ///< key, expected, desired → the value that is there now
  get,         ///< key → value
  add,         ///< key, i64 → i64
  check,       ///< keys → 0 all there, 1 not
  wait,        ///< keys → 0 as soon as all are there
  num_keys,    ///< → i64
  delete_key,  ///< key → i64 how many were deleted
  append,      ///< key, value. No answer.
  multi_get,   ///< keys → values
  multi_set,   ///< keys with values. No answer.
  cancel_wait, ///< → 1
  ping,        ///< u32 → the same u32
  queue_push,  ///< queue, value. No answer.
  queue_pop,   ///< queue → i64 how many there were, and the first if there was one
  queue_len,   ///< queue → i64
  list_keys,   ///< → i64 how many, keys
  barrier,     ///< key, i64 → 0 as soon as so many have come
};

const char* to_string(operation o);

/// What VALIDATE carries.
inline constexpr std::uint32_t validation_magic = 0x3C85F7CE;

/// Which release the client speaks; read off its first bytes.
enum class dialect : std::uint8_t {
  unknown,   ///< Too few bytes so far.
  validated, ///< torch ≥ 2.2: VALIDATE comes first.
  torch_2_1, ///< No VALIDATE; operations are numbered from SET = 0, without a gap.
  older,     ///< No VALIDATE; 2.1, or before it: then 7 is WATCH_KEY and 8 DELETE_KEY.
};

const char* to_string(dialect d);

/// One request; its text points into the bytes it was read from.
struct request {
  operation what = operation::validate;
  std::string_view key;
  std::string_view value;    ///< also the desired one of compare_set
  std::string_view expected; ///< of compare_set
  std::int64_t number = 0;   ///< of add, barrier, ping
  std::uint64_t count = 0;   ///< of fields in `list`
  std::string_view list;     ///< keys, or keys and values in turn: read with `fields`
};

/// Walks through fields whose lengths have been judged.
class fields {
 public:
  explicit fields(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  /// Precondition: not done.
  std::string_view next();

 private:
  std::string_view rest_;
};

/// Reads one client's requests, however they are cut. Judges every length as soon as it is there
/// and never asks for memory itself: the caller keeps the bytes of a request that is incomplete.
class reader {
 public:
  enum class status : std::uint8_t { incomplete, complete, violation };

  /// `bytes` starts where the last complete request ended; after `incomplete` it is what it was
  /// then, and more. Takes time in proportion to what is new. After a violation the reader is of no
  /// more use.
  status read(std::string_view bytes, request& out);

  /// Of the request that is complete, with its operation.
  std::size_t size() const { return size_; }
  /// After `incomplete`: with fewer bytes than this another look is in vain.
  std::size_t needed() const { return needed_; }
  /// After a violation: what was wrong, for people.
  const std::string& why() const { return why_; }

  dialect speaks() const { return dialect_; }

  /// Whether the next request is to cancel a wait. Precondition: the last one was complete, and
  /// `bytes` is not empty.
  bool at_cancel_wait(std::string_view bytes) const;

 private:
  enum class field : std::uint8_t { none, key, value, number32, number64, keys, pairs };
  struct shape;
  struct span {
    std::size_t at = 0;
    std::size_t size = 0;
  };

  static const shape& shape_of(operation o);
  status begin(std::string_view bytes);
  status translate(std::uint8_t number);
  status translate_older(std::uint8_t number);
  status take(std::string_view bytes, field f);
  status take_text(std::string_view bytes, std::size_t max, const char* name, span& where);
  status take_list(std::string_view bytes, bool pairs);
  bool lacks(std::string_view bytes, std::size_t more);
  status refuse(std::string why);

  dialect dialect_ = dialect::unknown;
  bool first_ = true; ///< no request has been read
  bool begun_ = false;
  operation what_ = operation::validate;
  std::size_t field_ = 0; ///< the next one of the request at hand
  std::size_t at_ = 0;    ///< where it starts
  span key_, value_, expected_, list_;
  std::int64_t number_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t texts_left_ = 0;
  bool in_list_ = false;
  std::size_t size_ = 0;
  std::size_t needed_ = 1;
  std::string why_;
};

/// Writes answers.
void put_u8(std::string& out, std::uint8_t n);
void put_u32(std::string& out, std::uint32_t n);
void put_i64(std::string& out, std::int64_t n);
void put_text(std::string& out, std::string_view text);

} // namespace troupe::tcpstore
