#include "messages/msg.hpp"

#include "messages/kinds.hpp"
#include "messages/limits.hpp"
#include "messages/testing/samples.hpp"
#include "messages/text.hpp"
#include "tests/rounds.hpp"

#include <capnp/any.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::messages;
using testing::every_kind;
using testing::sample;

namespace {

std::vector<std::uint64_t> bytes_of(const any_msg& m) {
  std::vector<std::uint64_t> words(m.words().size());
  std::memcpy(words.data(), m.words().begin(), m.size_bytes());
  return words;
}

std::vector<std::uint64_t> bytes_of(capnp::MessageBuilder& builder) {
  const auto flat = capnp::messageToFlatArray(builder);
  std::vector<std::uint64_t> words(flat.size());
  std::memcpy(words.data(), flat.begin(), flat.size() * sizeof(capnp::word));
  return words;
}

result<any_msg> admit(const std::vector<std::uint64_t>& words) {
  return messages::admit(words.data(), words.size() * sizeof(std::uint64_t));
}

/// What any bytes must come to: an error, or a message that holds no surprise for its reader.
/// Answers whether it was a message.
bool is_harmless(const std::vector<std::uint64_t>& words) {
  const auto m = admit(words);
  if (!m)
    return false;
  CHECK_NOTHROW(testing::read_everything(*m));
  CHECK_NOTHROW((void)to_text(*m));
  return true;
}

std::string error_text(const std::vector<std::uint64_t>& words, errc code) {
  const auto m = admit(words);
  REQUIRE_FALSE(m);
  CHECK(m.error().code == code);
  return m.error().what;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// A message built by hand, as a stranger would.
template<class Fill>
std::vector<std::uint64_t> forged(std::uint64_t kind, Fill fill) {
  // In one segment, so that a test can find its way in the words.
  capnp::MallocMessageBuilder builder(1u << 20);
  auto root = builder.initRoot<Envelope>();
  detail::write_envelope(root, stamp{"stranger"}, kind);
  fill(root);
  return bytes_of(builder);
}

const auto leave_empty = [](Envelope::Builder) {};

/// A tree of actors, `depth` deep.
std::vector<std::uint64_t> tree_of(unsigned depth) {
  return forged(capnp::typeId<TreeReport>(), [depth](Envelope::Builder root) {
    auto level = root.getBody().initAs<TreeReport>().initRoots(1);
    for (unsigned i = 0; i < depth; ++i)
      level = level[0].initChildren(1);
  });
}

/// `count` failures, whose messages are all the same `size - 1` bytes in the message.
std::vector<std::uint64_t> amplified(unsigned count, unsigned size) {
  auto words = forged(capnp::typeId<Failed>(), [count, size](Envelope::Builder root) {
    auto failures = root.getBody().initAs<Failed>().initFailures(count);
    failures[0].initMessage(size - 1);
  });
  // The first one's pointer: to a list of bytes, with a size that nothing else has. Its target is
  // as many words further as it says, so each later element's lies nearer by an element.
  const auto layout = capnp::Schema::from<WorkerFailure>().getProto().getStruct();
  const unsigned element = layout.getDataWordCount() + layout.getPointerCount();
  const std::uint64_t upper = (std::uint64_t{size} << 3) | 2;
  std::size_t first = 0;
  while (words[first] >> 32 != upper)
    ++first;
  const auto distance = static_cast<std::uint32_t>(words[first]) >> 2;
  for (unsigned i = 1; i < count; ++i)
    words[first + i * element] = (upper << 32) | ((distance - i * element) << 2) | 1;
  return words;
}

} // namespace

TEST_CASE("a message of every kind passes the border as it is") {
  random_source chance(1);
  for (const auto kind : every_kind()) {
    CAPTURE(kind_name(kind));
    for (int i = 0; i < 20; ++i) {
      const auto sent = sample(kind, chance);
      const auto got = admit(bytes_of(sent));
      REQUIRE(got);
      CHECK(got->kind() == kind);
      CHECK(bytes_of(*got) == bytes_of(sent));
      CHECK(got->envelope().sender == sent.envelope().sender);
      CHECK(got->envelope().follows == sent.envelope().follows);
      CHECK(got->envelope().about == sent.envelope().about);
      CHECK(got->envelope().sequence == sent.envelope().sequence);
      CHECK(got->envelope().correlation == sent.envelope().correlation);
      CHECK_NOTHROW(testing::read_everything(*got));
    }
  }
}

TEST_CASE("a message of every kind can be written as text and read back") {
  random_source chance(2);
  for (const auto kind : every_kind()) {
    CAPTURE(kind_name(kind));
    for (int i = 0; i < 20; ++i) {
      const auto sent = sample(kind, chance);
      const auto text = to_text(sent);
      CAPTURE(text);
      const auto body = text.find(") ") + 2;
      const auto got = from_text(kind_name(kind), text.substr(body), sent.envelope());
      REQUIRE(got);
      CHECK(to_text(*got) == text);
    }
  }
}

TEST_CASE("any single bit that flips gives an error or a message that can be read") {
  random_source chance(3);
  std::size_t still_messages = 0;
  std::size_t flips = 0;
  for (const auto kind : every_kind()) {
    CAPTURE(kind_name(kind));
    auto words = bytes_of(sample(kind, chance));
    // All of them; of a large message a part, but of every byte in turn.
    const std::size_t bits = words.size() * 64;
    const std::size_t stride = (bits / rounds(10'000)) | 1;
    for (std::size_t bit = 0; bit < bits; bit += stride) {
      CAPTURE(bit);
      words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
      still_messages += is_harmless(words) ? 1 : 0;
      words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
      ++flips;
    }
  }
  // Both happen, or the test looks at nothing.
  CHECK(still_messages > 0);
  CHECK(still_messages < flips);
}

TEST_CASE("words that change places or values at random are no danger either") {
  random_source chance(4);
  for (const auto kind : every_kind()) {
    CAPTURE(kind_name(kind));
    const auto words = bytes_of(sample(kind, chance));
    for (int i = 0; i < 300; ++i) {
      auto wild = words;
      for (auto changes = 1 + chance.below(4); changes > 0; --changes)
        wild[chance.below(wild.size())] =
            chance.chance(0.5) ? chance.next() : words[chance.below(words.size())];
      is_harmless(wild);
    }
  }
}

TEST_CASE("a message cut anywhere is an error") {
  random_source chance(5);
  for (const auto kind : every_kind()) {
    CAPTURE(kind_name(kind));
    auto words = bytes_of(sample(kind, chance));
    while (!words.empty()) {
      words.pop_back();
      CHECK_FALSE(is_harmless(words));
    }
  }
}

TEST_CASE("bytes that are not whole words, or none at all, are an error") {
  const std::uint64_t words[2] = {};
  CHECK_FALSE(messages::admit(words, 0));
  CHECK_FALSE(messages::admit(words, 7));
  CHECK_FALSE(messages::admit(words, 9));
  CHECK_FALSE(messages::admit(nullptr, 0));
}

TEST_CASE("a message at an odd address is copied to an even one") {
  random_source chance(6);
  const auto sent = sample(capnp::typeId<Hello>(), chance);
  std::vector<char> shifted(sent.size_bytes() + 1);
  std::memcpy(shifted.data() + 1, sent.words().begin(), sent.size_bytes());
  const auto got = messages::admit(shifted.data() + 1, sent.size_bytes());
  REQUIRE(got);
  CHECK(bytes_of(*got) == bytes_of(sent));
}

TEST_CASE("a message longer than a frame is refused before its bytes are looked at") {
  const std::uint64_t word = 0;
  const auto m = messages::admit(&word, limits::frame_max + sizeof(word));
  REQUIRE_FALSE(m);
  CHECK(contains(m.error().what, "longer than a frame"));
}

TEST_CASE("a tree too deep to walk is refused, one just as deep as allowed is not") {
  CHECK(is_harmless(tree_of(10)));
  unsigned deepest = 10;
  while (is_harmless(tree_of(deepest + 1)))
    ++deepest;
  CHECK(deepest < limits::nesting_max);
  CHECK(contains(error_text(tree_of(1'000), errc::invalid), "malformed"));
}

TEST_CASE("a message that reads larger than it is, because parts are shared, is refused") {
  CHECK(is_harmless(amplified(2, 8'000)));
  // 45 kB that would read as 4 MB.
  CHECK(contains(error_text(amplified(500, 8'000), errc::invalid), "malformed"));
}

TEST_CASE(
    "a message that would be longer than a frame once its shared parts are copied is refused") {
  const auto size_of = [](const std::vector<std::uint64_t>& words) {
    return words.size() * sizeof(std::uint64_t);
  };
  const auto fits = amplified(45'000, 80);
  const auto too_long = amplified(55'000, 80);
  CHECK(size_of(too_long) < limits::frame_max);
  CHECK(is_harmless(fits));
  CHECK(contains(error_text(too_long, errc::invalid), "longer than a frame"));
}

TEST_CASE("a capability is refused, also where only a newer schema would look") {
  auto words = forged(capnp::typeId<TreeRequest>(),
                      [](Envelope::Builder root) { root.getBody().initAsAnyStruct(0, 1); });
  CHECK(is_harmless(words));
  words.back() = 3;
  CHECK(contains(error_text(words, errc::invalid), "capability"));
}

TEST_CASE("a text longer than texts may be is refused") {
  const auto with_reason = [](std::size_t size) {
    return forged(capnp::typeId<Stop>(), [size](Envelope::Builder root) {
      root.getBody().initAs<Stop>().setReason(std::string(size, 'x'));
    });
  };
  CHECK(is_harmless(with_reason(limits::text_max)));
  CHECK(contains(error_text(with_reason(limits::text_max + 1), errc::invalid), "Stop"));
}

TEST_CASE("a sender's name longer than names may be is refused") {
  const auto sent_by = [](std::size_t size) {
    return forged(capnp::typeId<Stop>(), [size](Envelope::Builder root) {
      root.setSender(std::string(size, 'x'));
      root.getBody().initAs<Stop>();
    });
  };
  CHECK(is_harmless(sent_by(limits::name_max)));
  CHECK(contains(error_text(sent_by(limits::name_max + 1), errc::invalid), "name is too long"));
}

TEST_CASE("another major version of the protocol is refused by its number") {
  const auto words =
      forged(capnp::typeId<Stop>(), [](Envelope::Builder root) { root.setVersion(2); });
  CHECK(contains(error_text(words, errc::refused), "protocol version 2"));
}

TEST_CASE("a kind this build does not know is admitted unread, but only if it is sound") {
  constexpr std::uint64_t later = 0xfeed;
  const auto m = admit(forged(later, [](Envelope::Builder root) {
    root.getBody().initAs<Stop>().setReason("from the future");
  }));
  REQUIRE(m);
  CHECK(m->kind() == later);
  CHECK(to_text(*m) == "unknown kind 0xfeed");

  auto broken = forged(later, [](Envelope::Builder root) {
    root.getBody().initAs<Stop>().setReason("from the future");
  });
  broken.resize(broken.size() - 2);
  CHECK_FALSE(admit(broken));
}

TEST_CASE("a body of another shape than its kind's is refused at the border, not by its reader") {
  const auto words = forged(capnp::typeId<Prepare>(), [](Envelope::Builder root) {
    // Where Prepare has its world there is a text.
    root.getBody().initAs<Stop>().setReason("no world");
  });
  CHECK(contains(error_text(words, errc::invalid), "malformed"));
}

TEST_CASE("a message without a body reads as all defaults") {
  const auto m = admit(forged(capnp::typeId<Refused>(), leave_empty));
  REQUIRE(m);
  auto refused = m->as<Refused>().read();
  CHECK(refused->getReason().size() == 0);
  CHECK_FALSE(refused->getRetry());
}

TEST_CASE("an admitted message may be read as often as a reader likes") {
  const auto big = build<Prepare>(stamp{"master/rendezvous"}, [](Prepare::Builder body) {
    auto members = body.initWorld().initMembers(1'000);
    for (auto member : members)
      member.setNode("a name of some length");
  });
  auto prepare = big.read();
  std::size_t total = 0;
  for (int times = 0; times < 100; ++times)
    for (auto member : prepare->getWorld().getMembers())
      total += member.getNode().size();
  CHECK(total == 100u * 1'000u * 21u);
}

TEST_CASE("text shows what is set, for people") {
  const auto m =
      build<Prepared>(stamp{"n1/agent", term{2}, generation{3}, 9, 4}, [](Prepared::Builder body) {
        body.setNode("n1");
        body.setStorePort(29'401);
      });
  CHECK(to_text(m) == R"(Prepared(generation = 3, term = 2, correlation = 4) )"
                      R"((node = "n1", storePort = 29401, storeHosted = false))");
  CHECK(to_text(build<TreeRequest>(stamp{}, [](TreeRequest::Builder) {})) == "TreeRequest() ()");
}

TEST_CASE("text that is no message is an error that says what is wrong") {
  const auto error_about = [](const char* kind, const char* body) {
    const auto m = from_text(kind, body, stamp{"test"});
    REQUIRE_FALSE(m);
    CHECK(m.error().code == errc::invalid);
    return m.error().what;
  };
  CHECK(error_about("Preparde", "()") == "there is no message kind 'Preparde'");
  CHECK(contains(error_about("Prepared", "(nodde = \"n1\")"), "Prepared: "));
  CHECK(contains(error_about("Prepared", "(node = "), "Prepared: "));
  CHECK(contains(error_about("Prepared", "(storePort = 70000)"), "Prepared: "));
  CHECK(contains(error_about("Prepared", ""), "Prepared: "));
}

TEST_CASE("every kind has a name, and names lead back to kinds") {
  for (const auto kind : every_kind())
    CHECK(kind_named(kind_name(kind)) == kind);
  CHECK_FALSE(kind_named("Envelope"));
  CHECK_FALSE(schema_of(0));
}

TEST_CASE("an author counts its messages, and an answer carries its question's correlation") {
  author rendezvous("master/rendezvous", term{2});
  const auto nothing = [](Stop::Builder) {};
  CHECK(rendezvous.write<Stop>(generation{5}, nothing).envelope().sequence == 1);
  const auto second = rendezvous.write<Stop>(generation{5}, nothing).envelope();
  CHECK(second.sequence == 2);
  CHECK(second.sender == "master/rendezvous");
  CHECK(second.follows == term{2});
  CHECK(second.about == generation{5});
  const stamp question{"n1", term{2}, generation{4}, 1, 77};
  const auto answer = rendezvous.answer<Stop>(question, nothing).envelope();
  CHECK(answer.correlation == 77);
  CHECK(answer.about == generation{4});
  CHECK(answer.sequence == 3);
}

TEST_CASE("a question under another correlation says the same") {
  random_source chance(7);
  const auto question = sample(capnp::typeId<Hello>(), chance).as<Hello>();
  const auto asked = with_correlation(question, 99);
  CHECK(asked.envelope().correlation == 99);
  CHECK(asked.envelope().sequence == question.envelope().sequence);
  const auto body = [](const std::string& text) { return text.substr(text.find(") ")); };
  CHECK(body(to_text(asked)) == body(to_text(question)));
}

TEST_CASE("reading a message as what it is not, or an empty one, is a bug of ours") {
  const auto stop = build<Stop>(stamp{}, [](Stop::Builder) {});
  CHECK_THROWS_AS((void)stop.any().as<Start>(), invariant_broken);
  CHECK_THROWS_AS((void)msg<Stop>().read(), invariant_broken);
  CHECK_FALSE(any_msg());
  CHECK_FALSE(any_msg().is<Stop>());
}
