#include "actors/master/diagnosis/verdict.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace troupe;
using namespace troupe::actors;
using messages::HangKind;

namespace {

/// Four ranks of one group, each of which has stood in barrier #47 for `idle`, until told
/// otherwise.
struct scene {
  explicit scene(duration idle) {
    const auto group = names.number_of("dp", 1, 4);
    for (auto& f : all) {
      f.known = true;
      f.feeds = static_cast<std::uint64_t>(diag::feed::collectives);
      f.state = 'S';
      f.motion = rank_motion::stands;
      f.limit = 1'200ms;
      f.idle = idle;
      f.rows = {{group, 47, 46, diag::collective::barrier, 0, idle, true}};
    }
  }
  void leaves(std::uint32_t rank, duration ago) {
    all[rank].rows[0].left = all[rank].rows[0].entered;
    all[rank].idle = ago;
  }
  std::optional<verdict> judged() const { return judge({}, all, names); }

  std::vector<rank_facts> all{4};
  communicator_names names;
};

} // namespace

TEST_SUITE("a collective that all have entered") {
  TEST_CASE("and none leaves is a link's fault") {
    const auto v = scene(2s).judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->waits.ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(v->stood == 2s);
  }

  TEST_CASE("and one has not left, while the others wait in the next, is a link's fault") {
    scene s(2s);
    for (const auto further : {0, 1, 2})
      s.all[further].rows[0].entered = 48, s.all[further].rows[0].left = 47;
    const auto v = s.judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->elsewhere());
    CHECK(v->other.number == 47);
    CHECK(v->other.ranks == std::vector<std::uint32_t>{3});
  }

  TEST_CASE("of which one has left just now is about to end") {
    scene s(8s);
    s.leaves(0, 10ms);
    s.leaves(2, 0ms);
    CHECK_FALSE(s.judged());
  }

  TEST_CASE("and that not all leave is a link's fault, too") {
    scene s(8s);
    s.leaves(0, 2s);
    const auto v = s.judged();
    REQUIRE(v);
    CHECK(v->kind == HangKind::LINK);
    CHECK(v->waits.ranks == std::vector<std::uint32_t>{1, 2, 3});
  }
}
