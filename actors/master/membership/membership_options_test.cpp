#include "actors/master/membership/membership_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

using messages::job_words;

const messages::job_word check{"--network-check", "", true, false, {}};
const messages::job_word timeout{"--hang-timeout", "9", false, false, {}};

/// A master that stands alone, and was told `own`.
struct story {
  explicit story(job_words own = {}, std::optional<job_words> taken = {}) {
    membership_options o{"job", 3s, 6s, 11s, 60s, 1s};
    o.options = {std::move(own), std::move(taken), "a", false,
                 [](const job_words&) -> result<void> { return {}; }};
    core.emplace(std::move(o), messages::author("master/membership"), dawn);
  }
  std::string comes(const node_name& node, std::uint64_t session, const job_words& words) {
    return text(core->hello(dawn, session_id{session}, says(node, words)));
  }
  static messages::msg<messages::Hello> says(const node_name& node, const job_words& words) {
    return hello(node, 1, [&words](auto b) {
      write_job_words(b.initJobOptions(static_cast<unsigned>(words.size())), words);
    });
  }
  std::optional<membership_core> core;
};

} // namespace

TEST_SUITE("membership_core and the job's options") {
  TEST_CASE("are taken from the first node, and nothing is answered until the master begins anew") {
    story s;
    CHECK(s.comes("a", 1, {check, timeout}) ==
          lines("take options of a: --network-check, --hang-timeout 9"));
    CHECK(s.comes("b", 2, {check, timeout}).empty());
    CHECK(s.comes("c", 3, {}).empty());
    CHECK(s.core->present().empty());
    // What is recorded is what was said.
    story again;
    const auto effects = again.core->hello(dawn, session_id{1}, story::says("a", {check, timeout}));
    const auto& take = std::get<membership_core::take_options>(effects.back());
    CHECK(messages::read_job_words(take.record.read()->getOptions()).size() == 2);
    CHECK(take.record.read()->getNode() == "a");
  }

  TEST_CASE("as the master that begins with them knows, are what all nodes must say") {
    story s({}, job_words{check});
    CHECK(s.comes("b", 1, {check}) == lines("announce NodePresent b idle g0", "welcome 1"));
    CHECK(s.comes("c", 2, {}) == lines("announce NodePresent c idle g0", "welcome 2"));
    CHECK(
        s.comes("d", 3, {check, timeout}) ==
        lines("refuse 3: it was told --hang-timeout 9, and node a, the job's first, was not: give "
              "all nodes the same"));
  }

  TEST_CASE("that the master was told otherwise have no effect, and the node hears that") {
    story s({{"--hang-timeout", "7", false, false, {}}});
    const auto effects = s.core->hello(dawn, session_id{1}, story::says("a", {timeout}));
    CHECK(text(effects) == lines("announce NodePresent a idle g0", "welcome 1"));
    const auto& told = std::get<membership_core::note>(effects[1]).event;
    CHECK(told.text == "node a was told --hang-timeout 9, and this master --hang-timeout 7, which "
                       "counts");
    auto welcome = std::get<membership_core::welcome>(effects.back()).message.read();
    REQUIRE(welcome->getOptions().size() == 1);
    CHECK(std::string(welcome->getOptions()[0].cStr()).find("--hang-timeout 9 has no effect") == 0);
  }

  TEST_CASE("are not changed by a node that comes later than one that said none") {
    story s;
    CHECK(s.comes("a", 1, {}) == lines("announce NodePresent a idle g0", "welcome 1"));
    CHECK(s.comes("b", 2, {check}).find("refuse 2: it was told --network-check, and node a") == 0);
  }

  TEST_CASE("bind as long as a node of the job is known, and then the next one says them") {
    story s({}, job_words{check});
    CHECK(s.comes("b", 1, {check}) == lines("announce NodePresent b idle g0", "welcome 1"));
    (void)s.core->closed(dawn, session_id{1}, {ports::link_end::closed, "reset by peer"});
    // It may come back.
    CHECK(s.comes("c", 2, {timeout}).find("refuse 2: it was told --hang-timeout 9") == 0);
    (void)s.core->hello(dawn, session_id{3}, story::says("b", {check}));
    (void)s.core->departed(dawn, session_id{3}, "its user has ended it");
    CHECK(s.comes("c", 4, {timeout}) == lines("take options of c: --hang-timeout 9"));
  }

  TEST_CASE("are kept for the node that has said them, which dials anew") {
    for (const bool is_back : {false, true}) {
      membership_options o{"job", 3s, 6s, 11s, 60s, 1s};
      o.options = {
          {}, job_words{check}, "a", true, [](const job_words&) -> result<void> { return {}; }};
      membership_core core(o, messages::author("master/membership"), dawn);
      if (is_back) {
        (void)core.hello(dawn, session_id{1}, story::says("a", {check}));
        (void)core.departed(dawn, session_id{1}, "its user has ended it");
      }
      CHECK(text(core.hello(dawn + 1s, session_id{2}, story::says("c", {timeout}))) ==
            (is_back
                 ? lines("take options of c: --hang-timeout 9")
                 : lines("refuse 2 for now: it was told --hang-timeout 9, and node a, the job's "
                         "first, was not: give all nodes the same")));
      CHECK(text(core.hello(dawn + 7s, session_id{3}, story::says("d", {timeout}))) ==
            (is_back ? "" : lines("take options of d: --hang-timeout 9")));
    }
  }

  TEST_CASE("are kept for the nodes of an earlier master, which may be dialling for this one") {
    membership_options o{"job", 3s, 6s, 11s, 60s, 1s};
    o.has_predecessor = true;
    o.options = {
        {}, job_words{check}, "a", false, [](const job_words&) -> result<void> { return {}; }};
    membership_core core(o, messages::author("master/membership"), dawn);
    CHECK(text(core.hello(dawn + 5s, session_id{1}, story::says("c", {timeout})))
              .find("refuse 1 for now: it was told --hang-timeout 9") == 0);
    CHECK(text(core.hello(dawn + 7s, session_id{2}, story::says("c", {timeout}))) ==
          lines("take options of c: --hang-timeout 9"));
  }

  TEST_CASE("are no reason to end a node that trains, nor one after the verdict") {
    story s({}, job_words{check});
    const auto trains = [](const job_words& words) {
      return hello("b", 1, [&words](auto b) {
        write_job_words(b.initJobOptions(static_cast<unsigned>(words.size())), words);
        b.initState().setGeneration(3);
      });
    };
    CHECK(text(s.core->hello(dawn, session_id{1}, trains({timeout}))) ==
          lines("announce NodePresent b idle g3", "welcome 1"));
    s.core->job_over(dawn);
    CHECK(s.comes("c", 2, {timeout})
              .find("refuse 2 for now: the job 'job' of this master has ended") == 0);
  }

  TEST_CASE("are asked of a newcomer that waits for a name, too") {
    story s({}, job_words{check});
    CHECK(s.comes("a", 1, {check}) == lines("announce NodePresent a idle g0", "welcome 1"));
    const auto second =
        hello("a", 2, [](auto b) { write_job_words(b.initJobOptions(1), job_words{timeout}); });
    CHECK(text(s.core->hello(dawn, session_id{2}, second)).find("refuse 2: it was told") == 0);
  }
}
