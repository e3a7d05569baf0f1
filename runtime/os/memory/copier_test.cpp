#include "runtime/os/memory/copier.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace troupe::ckpt;

namespace {

std::string noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 chance(seed);
  std::string text(bytes, '\0');
  for (auto& c : text)
    c = static_cast<char>(chance());
  return text;
}

void all_arrive(const std::vector<std::size_t>& sizes, unsigned threads) {
  copier c(threads);
  CHECK(c.threads() == threads);
  for (std::size_t shift = 0; shift < 3; ++shift) {
    std::vector<std::string> from, to;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      from.push_back(noise(sizes[i] + shift, i));
      to.emplace_back(sizes[i] + 2 * shift + 2, '?');
    }
    std::vector<piece> pieces;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      pieces.push_back({to[i].data() + shift + 1, from[i].data() + shift, sizes[i]});
    c.run(pieces);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      CHECK(to[i] ==
            std::string(shift + 1, '?') + from[i].substr(shift) + std::string(shift + 1, '?'));
  }
}

} // namespace

TEST_CASE("every byte arrives and none beside it, whatever sizes and alignments the pieces have") {
  // Above 4 MiB altogether, pieces of 4 KiB go past the caches; else those of 256 KiB.
  std::vector<std::size_t> sizes = {0,    1,     63,      64,      65, 127,     4095,  4096,
                                    4097, 4'223, 262'143, 262'144, 0,  262'145, 9'000, 3};
  for (const unsigned threads : {1u, 2u, 5u})
    all_arrive(sizes, threads);
  sizes.insert(sizes.begin() + 7, 9'000'001);
  for (const unsigned threads : {1u, 2u, 5u})
    all_arrive(sizes, threads);
}

TEST_CASE("one copier serves many copies, none of them of anything too") {
  copier c(3);
  c.run({});
  const auto from = noise(10u << 20, 1);
  for (int round = 0; round < 50; ++round) {
    std::string to(from.size(), '?');
    c.run({{to.data(), from.data(), from.size()}});
    REQUIRE(to == from);
  }
}
