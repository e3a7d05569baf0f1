// Peers of one major version understand each other although one is older; see README.md.
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "messages/text.hpp"

#include <capnp/any.h>
#include <capnp/dynamic.h>
#include <capnp/schema-loader.h>
#include <capnp/schema-parser.h>
#include <capnp/serialize-text.h>
#include <doctest/doctest.h>
#include <kj/filesystem.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::messages;
using capnp::DynamicStruct;

namespace {

/// Another release of Troupe, as far as its schemas go.
class release {
 public:
  explicit release(const char* folder)
      : disk_(kj::newDiskFilesystem()),
        schemas_(disk_->getRoot().openSubdir(
            disk_->getCurrentPath().evalNative(std::string(TROUPE_COMPAT "/") + folder))) {}

  capnp::ParsedSchema file(const std::string& conversation) {
    return parser_.parseFromDirectory(*schemas_, kj::Path(conversation + ".capnp"), nullptr);
  }

  capnp::StructSchema kind(const std::string& conversation, const char* name) {
    return file(conversation).getNested(name).asStruct();
  }

  /// The bytes this release sends. Both parts in Cap'n Proto's text form.
  kj::Array<capnp::word> send(capnp::StructSchema kind, const char* envelope, const char* body) {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<DynamicStruct>(this->kind("envelope", "Envelope"));
    codec_.decode(envelope, root);
    root.set("version", protocol_version);
    root.set("kind", kind.getProto().getId());
    codec_.decode(body, root.init("body").as<capnp::AnyPointer>().initAs<DynamicStruct>(kind));
    return capnp::messageToFlatArray(builder);
  }

  /// What this release finds in a message, as text.
  std::string read(capnp::StructSchema kind, const any_msg& m) {
    capnp::FlatArrayMessageReader reader(m.words());
    auto root = reader.getRoot<DynamicStruct>(this->kind("envelope", "Envelope"));
    CHECK(root.get("kind").as<std::uint64_t>() == kind.getProto().getId());
    return codec_.encode(root.get("body").as<capnp::AnyPointer>().getAs<DynamicStruct>(kind))
        .cStr();
  }

 private:
  kj::Own<kj::Filesystem> disk_;
  kj::Own<const kj::ReadableDirectory> schemas_;
  capnp::SchemaParser parser_;
  capnp::TextCodec codec_;
};

any_msg admitted(kj::Array<capnp::word> words) {
  auto m = admit(kj::mv(words));
  if (!m)
    FAIL(m.error().what);
  return *m;
}

template<class... Kinds>
void load_present(capnp::SchemaLoader& loader, kind_list<Kinds...>) {
  (loader.loadCompiledTypeAndDependencies<Kinds>(), ...);
}

void load(capnp::SchemaLoader& loader, const capnp::ParsedSchema& scope) {
  for (auto nested : scope.getAllNested()) {
    loader.load(nested.getProto());
    load(loader, nested);
  }
}

const std::vector<std::string> conversations = {"envelope", "membership", "rendezvous"};

} // namespace

TEST_CASE("today's schemas and those of other releases are versions of each other") {
  for (const char* folder : {"older", "newer"}) {
    CAPTURE(folder);
    release other(folder);
    capnp::SchemaLoader loader;
    load_present(loader, all_kinds{});
    loader.loadCompiledTypeAndDependencies<Envelope>();
    for (const auto& conversation : conversations)
      CHECK_NOTHROW(load(loader, other.file(conversation)));
  }
}

TEST_CASE("a field that became something else is seen") {
  release other("broken");
  capnp::SchemaLoader loader;
  load_present(loader, all_kinds{});
  CHECK_THROWS_AS(load(loader, other.file("rendezvous")), kj::Exception);
}

TEST_CASE("what an older peer does not say reads as defaults") {
  release older("older");
  const auto hello =
      admitted(older.send(older.kind("membership", "Hello"), R"((sender = "n1", sequence = 5))",
                          R"((job = "j", node = "n1", incarnation = 7, slots = 8))"));
  CHECK(hello.envelope().sender == "n1");
  CHECK(hello.envelope().sequence == 5);
  CHECK(hello.envelope().correlation == 0);
  auto read = hello.as<Hello>().read();
  CHECK(read->getSlots() == 8);
  CHECK(read->getWantedRank() == -1);
  CHECK(read->getState().getPhase() == NodeState::Phase::IDLE);

  const auto prepare = admitted(older.send(
      older.kind("rendezvous", "Prepare"), R"((generation = 3))",
      R"((world = (generation = 3, worldSize = 8, members = [(node = "n1", slots = 8)])))"));
  CHECK(prepare.envelope().about == generation{3});
  auto world = prepare.as<Prepare>().read();
  CHECK(world->getWorld().getMembers()[0].getFirstRank() == 0);
  CHECK(world->getWorld().getRestartCount() == 0);
}

TEST_CASE("what a newer peer adds is passed over, wherever it stands") {
  release newer("newer");
  const auto prepare = admitted(newer.send(
      newer.kind("rendezvous", "Prepare"),
      R"((sender = "master", generation = 3, trace = (id = 9, hops = ["a", "b"]), urgent = true))",
      R"((checkpoint = 12, world = (generation = 3, worldSize = 16, spareNodes = ["n9"], members = [)"
      R"((node = "n1", slots = 8, rack = "r1", devices = [(name = "gpu0")]),)"
      R"((node = "n2", slots = 8, firstRank = 8, groupRank = 1)])))"));
  CHECK(prepare.envelope().sender == "master");
  CHECK(
      to_text(prepare) ==
      R"(Prepare(generation = 3) (world = (generation = 3, worldSize = 16, members = [)"
      R"((node = "n1", slots = 8, groupRank = 0, firstRank = 0, firstRoleRank = 0, roleWorldSize = 0, incarnation = 0, masterIndex = 0, bulkPort = 0), )"
      R"((node = "n2", slots = 8, groupRank = 1, firstRank = 8, firstRoleRank = 0, roleWorldSize = 0, incarnation = 0, masterIndex = 0, bulkPort = 0)], restartCount = 0, sinceFailureMs = 0)))");
}

TEST_CASE("a value that a newer peer added to an enumeration is none of ours, and no error") {
  release newer("newer");
  const auto hello =
      admitted(newer.send(newer.kind("membership", "Hello"), "()",
                          R"((node = "n1", role = observer, state = (phase = checkpointing)))"));
  auto read = hello.as<Hello>().read();
  CHECK(static_cast<int>(read->getRole()) == 2);
  CHECK(static_cast<int>(read->getState().getPhase()) == 6);
  CHECK_NOTHROW((void)to_text(hello));
}

TEST_CASE("a kind that a newer peer added is admitted, so that its reader can count and drop it") {
  release newer("newer");
  const auto rescale = admitted(newer.send(newer.kind("rendezvous", "Rescale"),
                                           R"((generation = 3))", R"((worldSize = 32))"));
  CHECK_FALSE(schema_of(rescale.kind()));
  CHECK(rescale.envelope().about == generation{3});
}

TEST_CASE("an older and a newer peer read ours") {
  release older("older");
  release newer("newer");
  const auto prepared =
      build<Prepared>(stamp{"n1/leader", term{1}, generation{3}, 1, 4}, [](Prepared::Builder body) {
        body.setNode("n1");
        body.setStorePort(29'401);
      });
  CHECK(older.read(older.kind("rendezvous", "Prepared"), prepared.any()) == R"((node = "n1"))");
  CHECK(newer.read(newer.kind("rendezvous", "Prepared"), prepared.any()) ==
        R"((node = "n1", storePort = 29401, storeHosted = false, bandwidth = 0))");
}

TEST_CASE("what we pass on keeps what a newer peer put into it") {
  release newer("newer");
  const auto kind = newer.kind("rendezvous", "Prepared");
  const auto got = admitted(newer.send(kind, "()", R"((node = "n1", bandwidth = 12.5))"));
  const auto passed_on = with_correlation(got.as<Prepared>(), 8);
  CHECK(newer.read(kind, passed_on.any()) ==
        R"((node = "n1", storePort = 0, storeHosted = false, bandwidth = 12.5))");
}
