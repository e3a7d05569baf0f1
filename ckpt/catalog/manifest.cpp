#include "ckpt/catalog/manifest.hpp"

#include "ckpt/limits.hpp"
#include "runtime/base/limits.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <libdeflate.h>

#include <charconv>
#include <limits>
#include <optional>
#include <set>

namespace troupe::ckpt {

namespace json = boost::json;

namespace {

constexpr int version = 2;
constexpr std::string_view before_checksum = "\"crc32\":";

std::string quoted(const std::string& text) {
  return json::serialize(json::string(text));
}

/// A text's members, and what was missing or wrong first.
class reader {
 public:
  explicit reader(const json::object& from) : from_(from) {}

  std::uint64_t number(const char* name, std::uint64_t most) {
    const json::value* found = from_.if_contains(name);
    std::uint64_t value = 0;
    if (found != nullptr && found->is_int64() && found->get_int64() >= 0)
      value = static_cast<std::uint64_t>(found->get_int64());
    else if (found != nullptr && found->is_uint64())
      value = found->get_uint64();
    else
      wrong_ = name;
    if (value > most)
      wrong_ = name;
    return value;
  }
  std::string text(const char* name) {
    const json::value* found = from_.if_contains(name);
    if (found != nullptr && found->is_string() && found->get_string().size() <= limits::name_max)
      return {found->get_string().begin(), found->get_string().end()};
    wrong_ = name;
    return {};
  }
  /// The member that is missing or wrong.
  const char* wrong() const { return wrong_; }

 private:
  const json::object& from_;
  const char* wrong_ = nullptr;
};

tl::unexpected<error> damaged(std::string why) {
  return failure(errc::invalid, "the manifest is damaged: " + std::move(why));
}

constexpr auto any = std::numeric_limits<std::uint64_t>::max();
constexpr auto any32 = std::numeric_limits<std::uint32_t>::max();

result<shard> shard_of(const json::value& from) {
  if (!from.is_object())
    return damaged("a shard is no object");
  reader members(from.get_object());
  shard found;
  found.name = members.text("name");
  found.file.bytes = members.number("bytes", any);
  found.file.crc32 = static_cast<std::uint32_t>(members.number("crc32", any32));
  found.node = members.text("node");
  if (members.wrong() != nullptr)
    return damaged(fmt::format("'{}' of a shard", members.wrong()));
  return found;
}

result<std::vector<save_id>> line_of(const json::value* from) {
  if (from == nullptr || !from->is_array() || from->get_array().size() > limits::line_runs_max)
    return damaged("'line'");
  std::vector<save_id> all;
  for (const auto& one : from->get_array()) {
    json::error_code wrong;
    const bool pair = one.is_array() && one.get_array().size() == 2;
    const auto made_by = pair ? one.get_array()[0].to_number<std::uint64_t>(wrong) : 0;
    const auto number = pair && !wrong ? one.get_array()[1].to_number<std::uint64_t>(wrong) : 0;
    if (!pair || wrong)
      return damaged("'line'");
    all.push_back({generation{made_by}, number});
  }
  return all;
}

/// The checksum covers every byte before it, so whatever else was read is what was written.
result<void> check_checksum(std::string_view text) {
  const auto at = text.rfind(before_checksum);
  if (at == std::string_view::npos)
    return damaged("it ends too early");
  const auto sum = libdeflate_crc32(0, text.data(), at);
  if (text.substr(at) != fmt::format("{}{}}}\n", before_checksum, sum))
    return damaged("its checksum does not match");
  return {};
}

} // namespace

result<void> check(const manifest& m) {
  if (m.shards.empty() || m.shards.size() > limits::shards_max)
    return failure(errc::invalid, fmt::format("step {} has {} shards; 1 to {} are allowed", m.step,
                                              m.shards.size(), limits::shards_max));
  if (m.directory.size() > limits::name_max || m.line.size() > limits::line_runs_max)
    return failure(errc::invalid,
                   fmt::format("step {}: its directory or its line is too long", m.step));
  std::set<std::string_view> names;
  for (const auto& s : m.shards) {
    if (auto valid = ports::valid_name(s.name); !valid)
      return valid;
    if (s.name == manifest_name || s.name.size() > limits::name_max ||
        s.node.size() > limits::name_max)
      return failure(errc::invalid,
                     fmt::format("step {}: no shard can be called '{}'", m.step, s.name));
    if (!names.insert(s.name).second)
      return failure(errc::invalid, fmt::format("step {}: '{}' is named twice", m.step, s.name));
  }
  return {};
}

std::string to_text(const manifest& m) {
  auto text = fmt::format("{{\"troupe_checkpoint\":{},\"step\":{},\"save\":{},\"generation\":{},"
                          "\"world_size\":{},\"layout\":{},\"directory\":{},\"completed_by\":{},\n"
                          "\"line\":[",
                          version, m.step, m.save, m.made_by.value, m.world_size, quoted(m.layout),
                          quoted(m.directory), quoted(m.completed_by));
  const char* comma = "";
  for (const auto& id : m.line) {
    text += fmt::format("{}[{},{}]", comma, id.made_by.value, id.number);
    comma = ",";
  }
  text += "],\n\"shards\":[";
  const char* between = "\n";
  for (const auto& s : m.shards) {
    text += fmt::format("{}{{\"name\":{},\"bytes\":{},\"crc32\":{},\"node\":{}}}", between,
                        quoted(s.name), s.file.bytes, s.file.crc32, quoted(s.node));
    between = ",\n";
  }
  text += "\n],\n";
  return text +
         fmt::format("{}{}}}\n", before_checksum, libdeflate_crc32(0, text.data(), text.size()));
}

namespace {

tl::unexpected<error> of_version(std::uint64_t other) {
  return failure(errc::refused,
                 fmt::format("the manifest was written by another version of Troupe: it is in "
                             "format {}, and this one reads {}",
                             other, version));
}

/// A later version may end otherwise, so that this comes before the checksum.
result<void> check_version(std::string_view text) {
  constexpr std::string_view begin = "{\"troupe_checkpoint\":";
  if (text.substr(0, begin.size()) != begin)
    return {};
  std::uint64_t of = 0;
  const auto read = std::from_chars(text.data() + begin.size(), text.data() + text.size(), of);
  if (read.ec != std::errc() || read.ptr == text.data() + text.size() || of == version)
    return {};
  return of_version(of);
}

} // namespace

result<manifest> manifest_of(std::string_view text) {
  if (auto ours = check_version(text); !ours)
    return tl::make_unexpected(std::move(ours.error()));
  if (auto whole = check_checksum(text); !whole)
    return tl::make_unexpected(std::move(whole.error()));
  json::parse_options strict;
  strict.max_depth = 4;
  json::error_code wrong;
  const auto document = json::parse({text.data(), text.size()}, wrong, {}, strict);
  if (wrong || !document.is_object())
    return damaged("it is no JSON object");
  reader members(document.get_object());
  if (const auto of = members.number("troupe_checkpoint", any);
      members.wrong() == nullptr && of != version)
    return of_version(of);
  manifest m;
  m.step = members.number("step", any);
  m.save = members.number("save", any);
  m.made_by = generation{members.number("generation", any)};
  m.world_size = static_cast<std::uint32_t>(members.number("world_size", any32));
  m.layout = members.text("layout");
  m.directory = members.text("directory");
  m.completed_by = members.text("completed_by");
  auto line = line_of(document.get_object().if_contains("line"));
  if (!line)
    return tl::make_unexpected(std::move(line.error()));
  m.line = std::move(*line);
  const json::value* shards = document.get_object().if_contains("shards");
  if (members.wrong() != nullptr || shards == nullptr || !shards->is_array())
    return damaged(fmt::format("'{}'", members.wrong() ? members.wrong() : "shards"));
  for (const auto& one : shards->get_array()) {
    auto read = shard_of(one);
    if (!read)
      return tl::make_unexpected(std::move(read.error()));
    m.shards.push_back(std::move(*read));
  }
  if (auto sound = check(m); !sound)
    return tl::make_unexpected(std::move(sound.error()));
  return m;
}

} // namespace troupe::ckpt
