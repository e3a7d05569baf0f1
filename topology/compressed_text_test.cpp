#include "topology/compressed_text.hpp"

#include "runtime/base/random.hpp"
#include "topology/limits.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::topology;

namespace {

std::string refusal(const std::string& text) {
  const auto read = plain(text);
  REQUIRE_FALSE(read.has_value());
  return read.error().what;
}

} // namespace

TEST_CASE("texts of all lengths come back") {
  random_source chance(1);
  for (std::size_t length = 0; length < 200; ++length) {
    std::string text;
    while (text.size() < length)
      text += static_cast<char>(chance.below(256));
    const auto packed = compressed(text);
    REQUIRE(packed.has_value());
    REQUIRE(packed->size() % 4 == 0);
    REQUIRE(*plain(*packed) == text);
  }
}

TEST_CASE("what other programs have written") {
  // gzip -n | base64
  CHECK(*plain("H4sIAAAAAAAAA6tWKkstKs7Mz1OyUjLUM1Cq5QIAB8DqARIAAAA=") ==
        "{\"version\":\"1.0\"}\n");
  CHECK(*plain(" \n{\"a\": 1}") == " \n{\"a\": 1}");
  const auto packed = *compressed("{\"a\": 1}");
  CHECK(*plain(packed.substr(0, 10) + "\r\n" + packed.substr(10) + "\n") == "{\"a\": 1}");
}

TEST_CASE("what is damaged") {
  CHECK(refusal("") == "it is empty");
  CHECK(refusal(" \n") == "it is empty");
  CHECK(refusal("[1]") == "it is neither a JSON object nor base64");
  CHECK(refusal("AAA") == "it is neither a JSON object nor base64");
  CHECK(refusal("A===") == "it is neither a JSON object nor base64");
  CHECK(refusal("AA=A") == "it is neither a JSON object nor base64");
  CHECK(refusal("AAAA") == "what is in its base64 is too short for gzip");
  CHECK(refusal(std::string(40, 'A')) == "what is in its base64 is damaged, or no gzip");
  const auto packed = *compressed("{\"version\": \"1.0\"}");
  for (std::size_t at = 0; at + 4 < packed.size(); ++at) {
    auto damaged = packed;
    damaged[at] = damaged[at] == 'A' ? 'B' : 'A';
    // Some bytes of the header say nothing of the text.
    if (const auto read = plain(damaged); read)
      CHECK(*read == "{\"version\": \"1.0\"}");
  }
  CHECK(plain(packed.substr(0, packed.size() - 4)).has_value() == false);
  CHECK(refusal(std::string(limits::topology_text_max + 1, 'A')) ==
        "it has 67108865 bytes; 67108864 are allowed");
}

TEST_CASE("a file that would be too long is refused before it is unpacked") {
  // The last four bytes are the length.
  CHECK(refusal("AAAAAAAAAAAAAAAAAAAAAAAAAAD///8f") ==
        "it has 536870911 bytes; 67108864 are allowed");
}
