#include "ckpt/catalog/manifest.hpp"

#include "ckpt/catalog/trackers.hpp"

#include <doctest/doctest.h>
#include <libdeflate.h>

#include <string>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

manifest example() {
  manifest m;
  m.step = 1'000;
  m.save = 7;
  m.made_by = generation{3};
  m.world_size = 2;
  m.layout = "ddp";
  m.directory = "1000";
  m.line = {{generation{2}, 9}, {generation{1}, 4}};
  m.completed_by = "node-b";
  m.shards = {{"rank_0.pt", {1'234, 0xffffffff}, "node-a"},
              {"below/rank \"1\".pt", {std::uint64_t{1} << 40, 0}, "node-b"}};
  return m;
}

/// A text with the right checksum, whatever it says.
std::string sealed(const std::string& body) {
  return body + "\"crc32\":" + std::to_string(libdeflate_crc32(0, body.data(), body.size())) +
         "}\n";
}

/// Another version's is not damaged.
std::string error_about(const std::string& text) {
  const auto read = manifest_of(text);
  REQUIRE_FALSE(read);
  const bool is_of_another = read.error().what.find("another version") != std::string::npos;
  CHECK(read.error().code == (is_of_another ? errc::refused : errc::invalid));
  return read.error().what;
}

} // namespace

TEST_CASE("a manifest is a line of JSON for each shard, and comes back as it was") {
  const auto text = to_text(example());
  CHECK(text ==
        "{\"troupe_checkpoint\":2,\"step\":1000,\"save\":7,\"generation\":3,\"world_size\":2,"
        "\"layout\":\"ddp\",\"directory\":\"1000\",\"completed_by\":\"node-b\",\n"
        "\"line\":[[2,9],[1,4]],\n\"shards\":[\n"
        "{\"name\":\"rank_0.pt\",\"bytes\":1234,\"crc32\":4294967295,\"node\":\"node-a\"},\n"
        "{\"name\":\"below/rank \\\"1\\\".pt\",\"bytes\":1099511627776,\"crc32\":0,"
        "\"node\":\"node-b\"}\n],\n\"crc32\":" +
            std::to_string(libdeflate_crc32(0, text.data(), text.rfind("\"crc32\""))) + "}\n");
  const auto back = manifest_of(text);
  REQUIRE(back);
  CHECK(to_text(*back) == text);
  CHECK(back->id() == save_id{generation{3}, 7});
  CHECK(back->completed_by == "node-b");
  CHECK(back->directory == "1000");
  CHECK(back->line == example().line);
  CHECK(back->shards.at(1).name == "below/rank \"1\".pt");
  CHECK(back->shards.at(1).file == ports::receipt{std::uint64_t{1} << 40, 0});
}

TEST_CASE("no byte of a manifest can be changed, lost or added unnoticed") {
  const auto text = to_text(example());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char bit : {1, 2, 16, 64}) {
      auto changed = text;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      error_about(changed);
    }
    error_about(text.substr(0, at));
    error_about(text.substr(at + 1));
  }
  error_about(text + "\n");
  error_about(std::string(text.size(), '\0'));
}

TEST_CASE("a manifest with the right checksum and the wrong content names what is wrong") {
  const auto with = [](const std::string& head, const std::string& shard) {
    return sealed("{" + head + ",\"shards\":[" + shard + "],");
  };
  const std::string before_line = R"("troupe_checkpoint":2,"step":1,"save":1,"generation":1,)"
                                  R"("world_size":1,"layout":"ddp","directory":"1",)"
                                  R"("completed_by":"",)";
  const auto head = before_line + R"("line":[[1,2]])";
  const std::string shard = R"({"name":"a","bytes":1,"crc32":2,"node":""})";
  REQUIRE(manifest_of(with(head, shard)));
  struct row {
    std::string text;
    const char* told;
  };
  const std::string version_1 = R"("troupe_checkpoint":1)";
  const row rows[] = {
      {with(version_1, shard),
       "another version of Troupe: it is in format 1, and this one reads 2"},
      {with(before_line + R"("line":[[1]])", shard), "'line'"},
      {with(before_line + R"("line":[[1,-2]])", shard), "'line'"},
      {with(before_line + R"("line":[["1",2]])", shard), "'line'"},
      {with(before_line + R"("line":5)", shard), "'line'"},
      {sealed("[1,"), "no JSON object"},
      {sealed("{" + head + ","), "'shards'"},
      {with(head, ""), "0 shards"},
      {with(head, "1"), "a shard is no object"},
      {with(head, shard + "," + shard), "'a' is named twice"},
      {with(head, R"({"name":"../a","bytes":1,"crc32":2,"node":""})"), "'..'"},
      {with(head, R"({"name":"/etc/passwd","bytes":1,"crc32":2,"node":""})"), "must be relative"},
      {with(head, R"({"name":"troupe-manifest.json","bytes":1,"crc32":2,"node":""})"),
       "no shard can be called"},
      {with(head, R"({"name":"a","bytes":-1,"crc32":2,"node":""})"), "'bytes' of a shard"},
      {with(head, R"({"name":"a","bytes":1,"crc32":4294967296,"node":""})"), "'crc32' of a shard"},
      {with(head, R"({"name":"a","bytes":1,"crc32":2})"), "'node' of a shard"},
      {with(head, R"({"name":7,"bytes":1,"crc32":2,"node":""})"), "'name' of a shard"},
      {with(head, "[[[[[[1]]]]]]"), "no JSON object"},
  };
  for (const auto& r : rows) {
    const auto what = error_about(r.text);
    CHECK_MESSAGE(what.find(r.told) != std::string::npos, what << " should say " << r.told);
  }
}

TEST_CASE("each framework finds the newest step where it looks for it, as it reads it") {
  const auto names = [](framework whose) {
    std::string all;
    for (const auto& one : trackers_of(whose, 100, "global_step100"))
      all += one.name + "=" + one.content + " ";
    return all;
  };
  CHECK(names(framework::ddp) == "dlrover_latest.txt=100 ");
  CHECK(names(framework::fsdp) == "dlrover_latest.txt=100 ");
  CHECK(names(framework::megatron) ==
        "latest_checkpointed_iteration.txt=100 dlrover_latest.txt=100 ");
  CHECK(names(framework::deepspeed) == "latest=global_step100 dlrover_latest.txt=100 ");
}
