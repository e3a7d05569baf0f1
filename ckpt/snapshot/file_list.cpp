#include "ckpt/snapshot/file_list.hpp"

#include "ckpt/limits.hpp"
#include "ckpt/snapshot/bytes.hpp"
#include "runtime/ports/storage.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <set>

namespace troupe::ckpt {

namespace {

constexpr std::string_view first_mark = "trpfiles", last_mark = "trp-list";
constexpr std::uint32_t list_version = 1;
constexpr std::uint64_t head_bytes = 8 + 4 + 4 + 8;
constexpr std::uint64_t file_bytes = 8 + 8 + 4 + 2; ///< without its name
constexpr std::uint64_t archive_bytes = 8 + 8;
constexpr std::uint64_t tail_bytes = 8 + 4 + 8;
/// What is ours in a step's directory.
constexpr std::string_view list_names = "troupe-files-";
constexpr std::array<std::string_view, 3> own_names{".troupe", "troupe-manifest", list_names};

tl::unexpected<error> bad_list(const std::string& what) {
  return failure(errc::invalid, "its list of files is damaged: " + what);
}

std::uint32_t list_crc(std::string_view bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

result<void> check_name(const std::string& name) {
  if (auto valid = ports::valid_name(name); !valid)
    return valid;
  if (std::any_of(own_names.begin(), own_names.end(),
                  [&name](std::string_view own) { return name.compare(0, own.size(), own) == 0; }))
    return failure(errc::invalid, fmt::format("'{}' cannot be the name of a step's file", name));
  return {};
}

/// Reads a list from its first byte on, and never behind its last.
class list_reader {
 public:
  explicit list_reader(std::string_view text) : text_(text) {}

  bool has(std::uint64_t bytes) const { return bytes <= text_.size() - at_; }
  template<class T>
  T number() {
    const auto value = take<T>(text_, at_);
    at_ += sizeof(T);
    return value;
  }
  std::string_view text(std::uint64_t bytes) {
    const auto found = text_.substr(at_, bytes);
    at_ += bytes;
    return found;
  }
  bool ended() const { return at_ == text_.size(); }

 private:
  std::string_view text_;
  std::uint64_t at_ = 0;
};

result<void> check_files(const file_list& list) {
  std::set<std::string_view> names;
  std::uint64_t free = 0;
  for (const auto& f : list.files) {
    if (auto named = check_name(f.name); !named)
      return named;
    if (!names.insert(f.name).second)
      return failure(errc::invalid, fmt::format("'{}' is there twice", f.name));
    if (f.begin % file_list::file_alignment != 0 || f.begin < free || f.begin > list.begin ||
        f.bytes > list.begin - f.begin)
      return failure(errc::invalid, fmt::format("'{}' does not lie where a file can", f.name));
    free = f.begin + f.bytes;
  }
  return {};
}

result<void> check_archives(const file_list& list) {
  auto file = list.files.begin();
  std::uint64_t free = 0;
  for (const auto& a : list.archives) {
    while (file != list.files.end() && a.begin >= file->begin + file->bytes)
      ++file;
    if (file == list.files.end() || a.begin < std::max(free, file->begin) ||
        a.bytes > file->begin + file->bytes - a.begin)
      return failure(errc::invalid, fmt::format("the archive at {} lies in no file", a.begin));
    free = a.begin + a.bytes;
  }
  return {};
}

} // namespace

std::uint64_t aligned_for_file(std::uint64_t at) {
  constexpr auto to = file_list::file_alignment;
  return (at + to - 1) / to * to;
}

std::uint64_t file_list::bytes() const {
  std::uint64_t sum = head_bytes + archives.size() * archive_bytes + tail_bytes;
  for (const auto& f : files)
    sum += file_bytes + f.name.size();
  return sum;
}

result<void> check(const file_list& list) {
  if (list.files.size() > limits::snapshot_files_max)
    return failure(errc::invalid, fmt::format("{} files; a snapshot has at most {}",
                                              list.files.size(), limits::snapshot_files_max));
  if (list.archives.size() > limits::snapshot_archives_max)
    return failure(errc::invalid, fmt::format("{} archives in its files; there can be {}",
                                              list.archives.size(), limits::snapshot_archives_max));
  if (list.begin % file_list::file_alignment != 0)
    return failure(errc::invalid, fmt::format("a list of files cannot begin at {}", list.begin));
  return check_files(list).and_then([&] { return check_archives(list); });
}

void write_list(char* to, const file_list& list) {
  const char* const begin = to;
  to = put(put(to, first_mark), list_version);
  to = put(to, static_cast<std::uint32_t>(list.files.size()));
  to = put(to, std::uint64_t{list.archives.size()});
  for (const auto& f : list.files) {
    to = put(put(put(to, f.begin), f.bytes), f.crc32);
    to = put(put(to, static_cast<std::uint16_t>(f.name.size())), std::string_view(f.name));
  }
  for (const auto& a : list.archives)
    to = put(put(to, a.begin), a.bytes);
  to = put(to, list.begin);
  put(put(to, list_crc({begin, static_cast<std::size_t>(to - begin)})), last_mark);
}

bool has_file_list(std::string_view snapshot) {
  return snapshot.size() >= head_bytes + tail_bytes &&
         snapshot.substr(snapshot.size() - last_mark.size()) == last_mark;
}

result<file_list> list_in(std::string_view snapshot) {
  if (!has_file_list(snapshot))
    return bad_list("it is missing");
  const auto begin = take<std::uint64_t>(snapshot, snapshot.size() - tail_bytes);
  if (begin > snapshot.size() - head_bytes - tail_bytes)
    return bad_list(fmt::format("it cannot begin at {}", begin));
  return list_of(snapshot.substr(begin)).and_then([&](file_list found) -> result<file_list> {
    if (found.begin != begin)
      return bad_list(fmt::format("it cannot begin at {}", found.begin));
    return found;
  });
}

result<file_list> list_of(std::string_view text) {
  if (!has_file_list(text) || text.substr(0, first_mark.size()) != first_mark)
    return bad_list("it was cut off, or is something else");
  if (text.size() > limits::file_list_bytes_max)
    return bad_list(fmt::format("it has {} bytes", text.size()));
  const auto covered = text.size() - tail_bytes + 8;
  if (take<std::uint32_t>(text, covered) != list_crc(text.substr(0, covered)))
    return bad_list("its checksum does not match");
  list_reader from(text.substr(first_mark.size(), covered - 8 - first_mark.size()));
  if (const auto found = from.number<std::uint32_t>(); found != list_version)
    return failure(errc::refused,
                   fmt::format("its list of files is of version {}, and this program reads {}",
                               found, list_version));
  const auto files = from.number<std::uint32_t>();
  const auto archives = from.number<std::uint64_t>();
  file_list list;
  list.begin = take<std::uint64_t>(text, covered - 8);
  for (std::uint32_t i = 0; i < files && from.has(file_bytes); ++i) {
    listed_file f;
    f.begin = from.number<std::uint64_t>();
    f.bytes = from.number<std::uint64_t>();
    f.crc32 = from.number<std::uint32_t>();
    const auto length = from.number<std::uint16_t>();
    if (!from.has(length))
      break;
    f.name = from.text(length);
    list.files.push_back(std::move(f));
  }
  for (std::uint64_t i = 0; i < archives && from.has(archive_bytes); ++i) {
    const auto begin = from.number<std::uint64_t>();
    list.archives.push_back({begin, from.number<std::uint64_t>()});
  }
  if (list.files.size() != files || list.archives.size() != archives || !from.ended())
    return bad_list("it has not what it counts");
  if (const auto sound = check(list); !sound)
    return bad_list(sound.error().what);
  return list;
}

std::string list_name(std::uint32_t shard) {
  return fmt::format("{}{:05}", list_names, shard);
}

bool is_list_name(std::string_view name) {
  return name.substr(0, list_names.size()) == list_names;
}

} // namespace troupe::ckpt
