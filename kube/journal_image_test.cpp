#include "kube/journal_image.hpp"

#include "runtime/base/base64.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

journal_image three_records() {
  journal_image image;
  image.job = "words";
  image.run = 7;
  image.term = 1'700'000'000'000;
  image.owner = "master-0/1";
  for (const char* record : {"one", "", "three"})
    image.append(record);
  return image;
}

json::object config_map_of(const journal_image& image) {
  json::object object{{"metadata", json::object{{"name", "words"}}}};
  put(object, image);
  return object;
}

/// What is wrong with the object.
std::string wrong(const json::value& object) {
  const auto read = image_in(object);
  REQUIRE_FALSE(read);
  return read.error().what;
}

std::string records_in(const json::object& object) {
  return *bytes_of_base64(std::string(object.at("binaryData").at("records").as_string()));
}

} // namespace

TEST_CASE("what is put into a ConfigMap comes back") {
  auto image = three_records();
  image.uid = "u1";
  const auto back = image_in(config_map_of(image));
  REQUIRE(back);
  REQUIRE(*back);
  CHECK(**back == image);
  CHECK((*back)->checksum == image.checksum);
  CHECK(*records_of(**back) == std::vector<std::string>{"one", "", "three"});
}

TEST_CASE("a run that is not known, and records that were dropped") {
  auto image = three_records();
  image.run.reset();
  image.replace({"three"});
  CHECK(image.first == 3);
  CHECK(image.last == 3);
  auto object = config_map_of(three_records());
  put(object, image);
  const auto back = image_in(object);
  REQUIRE(back);
  CHECK_FALSE((*back)->run);
  CHECK(*records_of(**back) == std::vector<std::string>{"three"});
  auto next = **back;
  next.append("four");
  CHECK(next.last == 4);
  CHECK(*image_in(config_map_of(next)) == next);
}

TEST_CASE("a ConfigMap without data is no journal yet; one with other data is none") {
  CHECK_FALSE(*image_in(json::object{{"metadata", json::object{}}}));
  CHECK_FALSE(*image_in(json::object{{"data", nullptr}}));
  CHECK(wrong(json::object{{"data", json::object{{"a", "b"}}}}) ==
        "the ConfigMap is not a journal of Troupe");
  CHECK(wrong(json::object{{"binaryData", json::object{{"a", ""}}}}) ==
        "the ConfigMap is not a journal of Troupe");
}

TEST_CASE("what others have put there stays") {
  json::object object{{"data", json::object{{"note", "x"}}}, {"binaryData", nullptr}};
  put(object, three_records());
  CHECK(object.at("data").at("note") == "x");
  CHECK(object.at("binaryData").is_object());
}

TEST_CASE("a later version is refused") {
  auto object = config_map_of(three_records());
  object["data"].as_object()["version"] = "2";
  CHECK(wrong(object).find("its version is 2, this program knows versions up to 1") == 0);
  CHECK(image_in(object).error().code == errc::refused);
}

TEST_CASE("damage is an error that names the record") {
  auto object = config_map_of(three_records());
  const auto bytes = records_in(object);
  const auto with = [&](const std::string& changed) {
    object["binaryData"].as_object()["records"] = base64_of(changed);
    return wrong(object);
  };
  const std::size_t first = framed_size(3), second = framed_size(0);
  SUBCASE("a changed byte") {
    auto changed = bytes;
    changed.back() ^= 1;
    CHECK(with(changed) == "record 3 is damaged: its checksum does not match");
  }
  SUBCASE("a record that went missing") {
    CHECK(with(bytes.substr(0, first) + bytes.substr(first + second)) ==
          "record 2 is damaged: its checksum does not match");
    CHECK(with(bytes.substr(0, first + second)) == "record 3 is missing");
    CHECK(with("") == "record 1 is missing");
  }
  SUBCASE("one that is cut, or longer than all there is") {
    CHECK(with(bytes.substr(0, bytes.size() - 1)) == "record 3 is damaged: it ends too soon");
    CHECK(with(bytes.substr(0, first + second + 3)) == "record 3 is damaged: it ends too soon");
    CHECK(with(std::string(8, '\xff')) == "record 1 is damaged: it ends too soon");
  }
  SUBCASE("one too many") {
    auto longer = three_records();
    longer.append("four");
    CHECK(with(records_in(config_map_of(longer))) ==
          "record 4 is damaged: it is not among those that are counted");
  }
  SUBCASE("numbers that are none") {
    for (const char* name : {"epoch", "first", "last"})
      for (const char* value : {"", "-1", "x", "1 ", "99999999999999999999"}) {
        auto odd = config_map_of(three_records());
        odd["data"].as_object()[name] = value;
        CHECK(wrong(odd).find("the journal in the ConfigMap is damaged") == 0);
      }
    object["binaryData"].as_object()["records"] = "*";
    CHECK(wrong(object).find("the journal in the ConfigMap is damaged") == 0);
  }
}
