#include "runtime/tcpstore/wire.hpp"

#include "runtime/tcpstore/limits.hpp"
#include "runtime/tcpstore/testing/requests.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::tcpstore;
using namespace troupe::tcpstore::testing;
using status = reader::status;

namespace {

/// A request in words.
std::string in_words(const request& r) {
  std::string s = to_string(r.what);
  const auto say = [&s](std::string_view t) { s += " '" + std::string(t) + "'"; };
  if (!r.key.empty())
    say(r.key);
  if (!r.expected.empty())
    say(r.expected);
  if (!r.value.empty())
    say(r.value);
  for (fields all(r.list); !all.done();)
    say(all.next());
  if (r.number != 0 && r.what != operation::validate)
    s += " " + std::to_string(r.number);
  return s;
}

/// Everything `bytes` ask for, given in pieces of `piece` bytes; then what is wrong, if anything.
std::vector<std::string> asked(const std::string& bytes, std::size_t piece) {
  reader in;
  std::vector<std::string> all;
  std::string held;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    held += bytes.substr(at, piece);
    for (request r; !held.empty();) {
      const auto s = in.read(held, r);
      if (s == status::violation) {
        all.push_back("violation: " + in.why());
        return all;
      }
      if (s == status::incomplete) {
        CHECK(in.needed() > held.size());
        break;
      }
      all.push_back(in_words(r));
      held.erase(0, in.size());
    }
  }
  if (!held.empty())
    all.emplace_back("incomplete");
  return all;
}

using words = std::vector<std::string>;

/// What becomes of `bytes` after a proper start.
std::string error_text(const std::string& bytes) {
  const auto all = asked(hello() + bytes, 1'000'000);
  return all.size() == 2 ? all[1] : "no error";
}

std::string too_long(operation o, std::uint64_t size) {
  return op(o) + i64(static_cast<std::int64_t>(size));
}

} // namespace

TEST_SUITE("store wire: requests") {
  TEST_CASE("every operation is read, in pieces of any size") {
    const auto bytes = hello() + ping(4711) + set("/k", "v") + compare_set("/k", "v", "w") +
                       get("/k") + add("/n", -3) + check({"/k", "/n"}) + wait({"/k"}) +
                       op(operation::num_keys) + erase("/k") + append("/k", "more") +
                       multi_get({"/a", "/b"}) + multi_set({{"/a", "1"}, {"/b", "2"}}) + cancel() +
                       push("/q", "x") + pop("/q") + length("/q") + op(operation::list_keys) +
                       barrier("/all", 8) + set("/empty", "") + check({}) + multi_set({});
    const words expected = {"validate",
                            "ping 4711",
                            "set '/k' 'v'",
                            "compare_set '/k' 'v' 'w'",
                            "get '/k'",
                            "add '/n' -3",
                            "check '/k' '/n'",
                            "wait '/k'",
                            "num_keys",
                            "delete_key '/k'",
                            "append '/k' 'more'",
                            "multi_get '/a' '/b'",
                            "multi_set '/a' '1' '/b' '2'",
                            "cancel_wait",
                            "queue_push '/q' 'x'",
                            "queue_pop '/q'",
                            "queue_len '/q'",
                            "list_keys",
                            "barrier '/all' 8",
                            "set '/empty'",
                            "check",
                            "multi_set"};
    for (const std::size_t piece : {1u, 2u, 3u, 7u, 13u, 64u, 100'000u}) {
      CAPTURE(piece);
      CHECK(asked(bytes, piece) == expected);
    }
  }

  TEST_CASE("lengths are judged as soon as they are there, before the bytes they announce") {
    const auto huge = std::uint64_t{1} << 63;
    CHECK(error_text(too_long(operation::get, limits::store_key_max + 1)) ==
          "violation: a key of 8193 bytes; 8192 are allowed");
    CHECK(error_text(too_long(operation::get, huge)).find("violation: a key of") == 0);
    CHECK(error_text(op(operation::set) + text("k") +
                     i64(static_cast<std::int64_t>(limits::store_value_max) + 1)) ==
          "violation: a value of 8388609 bytes; 8388608 are allowed");
    CHECK(error_text(too_long(operation::wait, limits::store_keys_per_request_max + 1)) ==
          "violation: 131073 keys in one request; 131072 are allowed");
    CHECK(error_text(too_long(operation::multi_set, ~std::uint64_t{0})).find("violation: ") == 0);
    // What is allowed is waited for.
    CHECK(error_text(too_long(operation::get, limits::store_key_max)) == "incomplete");
    CHECK(error_text(too_long(operation::wait, limits::store_keys_per_request_max)) ==
          "incomplete");
  }

  TEST_CASE("many large values in one request are bounded together") {
    reader in;
    request r;
    auto bytes = hello();
    REQUIRE(in.read(bytes, r) == status::complete);
    bytes = op(operation::multi_set) + i64(100'000);
    const auto pair = text("k") + text(std::string(limits::store_value_max, 'v'));
    // Grown without real memory for all of it: the reader only looks at what is new.
    status s = in.read(bytes, r);
    while (s == status::incomplete && bytes.size() < limits::store_request_max + pair.size()) {
      bytes += pair;
      s = in.read(bytes, r);
    }
    CHECK(s == status::violation);
    CHECK(in.why() == "a request of more than 268435456 bytes");
  }

  TEST_CASE("unknown operations, and VALIDATE a second time") {
    CHECK(error_text(std::string(1, 19)) == "violation: there is no operation 19");
    CHECK(error_text(std::string(1, '\xff')) == "violation: there is no operation 255");
    CHECK(error_text(hello()) == "violation: there is no operation 0");
  }
}

TEST_SUITE("store wire: the dialect of a client") {
  struct opening {
    const char* name;
    std::string bytes;
    words expected;
  };

  TEST_CASE("is read off its first bytes") {
    const std::vector<opening> all = {
        {"2.2 and newer", hello() + get("/k"), {"validate", "get '/k'"}},
        {"older: SET", old_op(0) + text("/k") + text("v"), {"set '/k' 'v'"}},
        {"older: init",
         old_op(3) + text("init/") + i64(1) + old_op(2) + text("init/"),
         {"add 'init/' 1", "get 'init/'"}},
        {"older: WAIT, GETNUMKEYS",
         old_op(5) + texts({"/k"}) + old_op(6),
         {"wait '/k'", "num_keys"}},
        {"2.1: shown by MULTI_SET",
         old_op(10) + i64(1) + text("a") + text("b") + old_op(8) + text("a") + text("c") +
             old_op(11),
         {"multi_set 'a' 'b'", "append 'a' 'c'", "cancel_wait"}},
        {"2.1: 7 on a connection that does other things",
         old_op(6) + old_op(7) + text("k"),
         {"num_keys", "delete_key 'k'"}},
        {"half a magic number", hello().substr(0, 4), {"incomplete"}},
    };
    for (const auto& each : all) {
      CAPTURE(each.name);
      CHECK(asked(each.bytes, 1) == each.expected);
      CHECK(asked(each.bytes, 1'000) == each.expected);
    }
  }

  TEST_CASE("cannot always be told, and then is not guessed") {
    CHECK(asked(old_op(6) + old_op(8) + text("k"), 1)[1].find("cannot be told") !=
          std::string::npos);
    CHECK(asked(old_op(7) + text("k"), 1)[0].find("cannot be told") != std::string::npos);
  }

  TEST_CASE("that speaks another protocol") {
    for (const std::string bytes :
         {"GET / HTTP/1.1\r\n", "\x16\x03\x01\x02\x00\x01", "TRP1xxxxxxxxxxxx",
          "\x05"
          "aaaaaaaaaaaa"}) {
      CAPTURE(bytes);
      const auto said = asked(bytes, 4);
      REQUIRE(said.size() == 1);
      CHECK(said[0].find("violation: ") == 0);
    }
    // VALIDATE with another number reads as an ancient SET of an impossible key.
    CHECK(asked(op(operation::validate) + u32(0xdeadbeef) + u32(0), 1)[0] ==
          "violation: it is no client of any torch known here");
  }
}
