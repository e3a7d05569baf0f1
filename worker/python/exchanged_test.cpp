#include "worker/python/exchanged.hpp"

#include <doctest/doctest.h>

#include <string>

#include <sys/mman.h>

using namespace troupe::worker;

namespace {

std::string seen;

void* joined(void* a, void* b, void* c, void* d) {
  for (void* each : {a, b, c, d})
    seen += static_cast<const char*>(each);
  return &seen;
}

using function = void* (*)(void*, void*, void*, void*);

void* call(void** word) {
  char a[] = "a", b[] = "b", c[] = "c", d[] = "d";
  return reinterpret_cast<function>(*word)(a, b, c, d);
}

observer watching() {
  observer by;
  by.first = 7;
  by.before = [](const observer& self, const arguments& with) -> std::intptr_t {
    seen += "before " + std::string(static_cast<const char*>(with.word[0])) + " ";
    return static_cast<std::intptr_t>(self.first);
  };
  by.after = [](const observer&, const arguments&, std::intptr_t from_before, void* result) {
    seen += " after " + std::to_string(from_before);
    return result;
  };
  return by;
}

} // namespace

TEST_CASE("the caller's arguments and the result pass, and what looks on is called around") {
  void* word = reinterpret_cast<void*>(joined);
  REQUIRE(exchange(&word, watching()));
  CHECK(word != reinterpret_cast<void*>(joined));
  seen.clear();
  CHECK(call(&word) == &seen);
  CHECK(seen == "before a abcd after 7");
  change_back(&word);
  CHECK(word == reinterpret_cast<void*>(joined));
}

TEST_CASE("a word that another has changed since is left") {
  void* word = reinterpret_cast<void*>(joined);
  REQUIRE(exchange(&word, watching()));
  void* const others = &seen;
  word = others;
  change_back(&word);
  CHECK(word == others);
}

TEST_CASE("what cannot be written to is refused, and not a crash") {
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto** const word = static_cast<void**>(page);
  *word = reinterpret_cast<void*>(joined);
  REQUIRE(::mprotect(page, 4096, PROT_READ) == 0);
  CHECK_FALSE(exchange(word, watching()));
  CHECK_FALSE(exchange(nullptr, watching()));
  void* empty = nullptr;
  CHECK_FALSE(exchange(&empty, watching()));
  ::munmap(page, 4096);
}
