#include "ckpt/snapshot/snapshot_layout.hpp"

#include "ckpt/snapshot/testing/file_snapshot.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using testing::file_snapshot;

// PyTorch's own readers read these files in tests/conformance/test_files.py.

namespace {

const std::vector<file_snapshot::file> some = {
    {"__0_0.distcp",
     {{true, "\x80\x02.", {std::string(1000, 'x')}}, {true, "\x80\x02N.", {std::string(7, 'y')}}}},
    {"model.safetensors", {{false, "header", {std::string(5, 'a'), std::string(3, 'b')}}}},
    {"deep/er/empty.bin", {}},
};

} // namespace

TEST_CASE("files lie at whole blocks, parts behind each other, and every byte is written") {
  const auto layout = snapshot_layout::of(file_snapshot::shape(some));
  REQUIRE(layout);
  const auto snapshot = file_snapshot::written(*layout, some, '?');
  CHECK(snapshot == file_snapshot::written(*layout, some, '!'));
  const auto list = list_in(snapshot);
  REQUIRE(list);
  REQUIRE(list->files.size() == 3);
  for (const auto& f : list->files)
    CHECK(f.begin % file_list::file_alignment == 0);
  CHECK(list->files[0].name == "__0_0.distcp");
  CHECK(file_snapshot::content(snapshot, list->files[1]) == "headeraaaaabbb");
  CHECK(list->files[2].name == "deep/er/empty.bin");
  CHECK(list->files[2].bytes == 0);
  CHECK(list->snapshot_bytes() == snapshot.size());
}

TEST_CASE("archives in a file are told by their places, and each is one when it is sealed") {
  const auto layout = snapshot_layout::of(file_snapshot::shape(some)).value();
  CHECK(layout.part_in_file(0) == 0);
  CHECK(layout.part_in_file(1) % archive_layout::alignment == 0);
  CHECK(layout.part_in_file(1) >= layout.part_bytes(0));
  const auto snapshot = file_snapshot::sealed(some);
  const auto list = list_in(snapshot).value();
  REQUIRE(list.archives.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& a = list.archives[i];
    CHECK(a.begin == list.files[0].begin + layout.part_in_file(i));
    CHECK(a.bytes == layout.part_bytes(i));
    CHECK(verify(std::string_view(snapshot).substr(a.begin, a.bytes)));
  }
  for (const auto& f : list.files)
    CHECK(f.crc32 == libdeflate_crc32(0, snapshot.data() + f.begin, f.bytes));
}

TEST_CASE("one archive without a name is a file of torch.save, as before there were lists") {
  snapshot_layout::contents c;
  c.parts.push_back({true, 3, 1});
  c.storages.push_back(100);
  const auto layout = snapshot_layout::of(c).value();
  const torch_file file(3, {100});
  CHECK(layout.bytes() == file.layout().bytes());
  CHECK(layout.head_at(0) == file.pickle_at());
  CHECK(layout.storage_at(0) == file.storage_at(0));
  std::string one(layout.bytes(), '?');
  auto other = one;
  layout.write_frame(one.data());
  file.write_frame(other.data());
  CHECK(one == other);
  CHECK(!has_file_list(one));
}

TEST_CASE("a last file goes behind the others when its content is known") {
  auto shape = file_snapshot::shape(some);
  shape.last_file_room = 5000;
  shape.last_file_name = 9;
  const auto layout = snapshot_layout::of(shape).value();
  auto snapshot = file_snapshot::written(layout, some);
  CHECK(!list_in(snapshot)); // not whole yet
  SUBCASE("smaller than its room") {
    const auto bytes =
        add_last_file(snapshot.data(), snapshot.size(), *layout.list(), ".metadata", "where");
    REQUIRE(bytes);
    CHECK(*bytes < snapshot.size());
    snapshot.resize(*bytes);
    const auto list = list_in(snapshot).value();
    REQUIRE(list.files.size() == 4);
    CHECK(list.files[3].name == ".metadata");
    CHECK(file_snapshot::content(snapshot, list.files[3]) == "where");
    CHECK(file_snapshot::content(snapshot, list.files[1]) == "headeraaaaabbb");
    REQUIRE(seal_snapshot(snapshot.data(), snapshot.size()));
  }
  SUBCASE("as large as its room") {
    const auto bytes = add_last_file(snapshot.data(), snapshot.size(), *layout.list(), ".metadata",
                                     std::string(5000, 'm'));
    REQUIRE(bytes);
    CHECK(*bytes == snapshot.size());
    CHECK(list_in(snapshot));
  }
  SUBCASE("larger") {
    const auto bytes = add_last_file(snapshot.data(), snapshot.size(), *layout.list(), ".metadata",
                                     std::string(9000, 'm'));
    REQUIRE(!bytes);
    CHECK(bytes.error().code == errc::overloaded);
    CHECK(bytes.error().what.find("'.metadata' has 9000 bytes") != std::string::npos);
  }
  SUBCASE("with the name of another") {
    CHECK(!add_last_file(snapshot.data(), snapshot.size(), *layout.list(), "__0_0.distcp", ""));
  }
}

TEST_CASE("of no files there is a list, and nothing else") {
  const auto snapshot = file_snapshot::of({});
  CHECK(list_in(snapshot)->files.empty());
  CHECK(snapshot.size() == list_in(snapshot)->bytes());
}

TEST_CASE("what cannot be laid out is refused") {
  const auto refused = [](const std::vector<file_snapshot::file>& files) {
    const auto layout = snapshot_layout::of(file_snapshot::shape(files));
    return layout ? "" : layout.error().what;
  };
  const std::vector<file_snapshot::part> none;
  CHECK(refused({{"a", none}, {"a", none}}) == "'a' is there twice");
  CHECK(refused({{"../a", none}}).find("is no name for a stored file") != std::string::npos);
  CHECK(refused({{"/a", none}}).find("is no name for a stored file") != std::string::npos);
  CHECK(refused({{"troupe-manifest.json", none}}) ==
        "'troupe-manifest.json' cannot be the name of a step's file");
  auto shape = file_snapshot::shape(some);
  shape.storages.pop_back();
  CHECK(!snapshot_layout::of(shape));
  shape = file_snapshot::shape(some);
  shape.files.pop_back();
  shape.files.pop_back();
  CHECK(!snapshot_layout::of(shape));
}

TEST_CASE("a layout is kept for the same contents, and any other have their own") {
  const auto first = file_snapshot::shape(some);
  kept_layout kept;
  const auto* const layout = kept.of(first).value();
  CHECK(kept.of(first).value() == layout);
  const auto is_its_own = [&](auto change) {
    auto other = first;
    change(other);
    CHECK_FALSE(other == first);
    REQUIRE(kept.of(first));
    const auto found = kept.of(other);
    const auto expected = snapshot_layout::of(other);
    REQUIRE(found.has_value() == expected.has_value());
    if (!found)
      return;
    const auto& anew = *expected;
    CHECK((*found)->bytes() == anew.bytes());
    for (std::size_t i = 0; i < other.storages.size(); ++i)
      CHECK((*found)->storage_at(i) == anew.storage_at(i));
    for (std::size_t i = 0; i < other.parts.size(); ++i)
      CHECK((*found)->head_at(i) == anew.head_at(i));
    CHECK((*found)->list().has_value() == anew.list().has_value());
  };
  is_its_own([](auto& c) { ++c.storages[0]; });
  is_its_own([](auto& c) { ++c.storages.back(); });
  is_its_own([](auto& c) { c.storages.pop_back(); });
  is_its_own([](auto& c) { ++c.parts[0].head; });
  is_its_own([](auto& c) { c.parts[0].is_archive = false; });
  is_its_own([](auto& c) { ++c.parts[0].storages, --c.parts[1].storages; });
  is_its_own([](auto& c) { c.files[0].name += 'x'; });
  is_its_own([](auto& c) { --c.files[0].parts, ++c.files[1].parts; });
  is_its_own([](auto& c) { c.last_file_room = 1; });
  is_its_own([](auto& c) { c.last_file_name = 9, c.last_file_room = 1 << 20; });
}
