#include "runtime/base/base64.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("base64 of the examples of RFC 4648, there and back") {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    CHECK(base64_of(bytes) == text);
    CHECK(bytes_of_base64(text) == bytes);
  }
}

TEST_CASE("bytes of all values come back, also from broken lines") {
  std::string all;
  for (int value = 0; value < 256; ++value)
    all += static_cast<char>(value);
  auto text = base64_of(all);
  CHECK(bytes_of_base64(text) == all);
  text.insert(76, "\r\n");
  CHECK(bytes_of_base64(text) == all);
}

TEST_CASE("what is no base64") {
  for (const char* text : {"Zg=", "Zg", "Z===", "Zg==Zg==", "Zm9*", "=Zm9"})
    CHECK_FALSE(bytes_of_base64(text));
}
