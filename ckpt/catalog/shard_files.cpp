#include "ckpt/catalog/shard_files.hpp"

#include "ckpt/limits.hpp"
#include "ckpt/snapshot/file_list.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::ckpt {

namespace {

std::string_view text_in_memory(ports::bytes_view bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

result<void> get_file(ports::storage& storage, const found_step& from, const std::string& file,
                      const ports::receipt& expected, ports::bytes_room into,
                      const std::atomic<bool>& stop) {
  const auto name = file_in(from.directory, file);
  const auto got = storage.get(name, into, stop);
  if (!got)
    return failure(got.error().code, fmt::format("step {}: {}", from.step, got.error().what));
  if (got->bytes != expected.bytes)
    return failure(errc::invalid, fmt::format("step {}: '{}' has {} bytes, its manifest says {}",
                                              from.step, name, got->bytes, expected.bytes));
  if (got->crc32 != expected.crc32)
    return failure(errc::invalid,
                   fmt::format("step {}: '{}' is damaged: its checksum is {:08x}, its manifest "
                               "says {:08x}",
                               from.step, name, got->crc32, expected.crc32));
  return {};
}

/// The list of a shard that has one, as its file has it.
result<std::string> get_list(ports::storage& storage, const found_step& from, const shard& which) {
  const auto name = file_in(from.directory, which.name);
  if (which.file.bytes > limits::file_list_bytes_max)
    return failure(errc::invalid, fmt::format("step {}: '{}' cannot have {} bytes", from.step, name,
                                              which.file.bytes));
  auto text = storage.get_small(name, limits::file_list_bytes_max);
  if (!text)
    return failure(text.error().code, fmt::format("step {}: {}", from.step, text.error().what));
  if (text->size() != which.file.bytes ||
      libdeflate_crc32(0, text->data(), text->size()) != which.file.crc32)
    return failure(
        errc::invalid,
        fmt::format("step {}: '{}' is damaged: it is not what its manifest says", from.step, name));
  return text;
}

result<file_list> list_from(const std::string& text, const found_step& from, const shard& which) {
  return list_of(text).map_error([&](error e) {
    e.what =
        fmt::format("step {}: '{}': {}", from.step, file_in(from.directory, which.name), e.what);
    return e;
  });
}

} // namespace

result<ports::receipt> put_shard(ports::storage& storage, const destination& to,
                                 ports::bytes_view snapshot, const std::atomic<bool>& stop,
                                 const ports::may_replace& check) {
  const auto text = text_in_memory(snapshot);
  if (!has_file_list(text) && !is_list_name(to.file))
    return storage.put_if(file_in(to.directory, to.file), snapshot, stop, check);
  if (to.directory == in_place || !is_list_name(to.file))
    return failure(errc::invalid, fmt::format("'{}': several files of a rank need a directory of "
                                              "their step, and a list",
                                              file_in(to.directory, to.file)));
  const auto list = list_in(text);
  if (!list)
    return tl::make_unexpected(list.error());
  for (const auto& f : list->files) {
    const auto put = storage.put_if(file_in(to.directory, f.name),
                                    {snapshot.data + f.begin, f.bytes}, stop, check);
    if (!put)
      return put;
    if (put->crc32 != f.crc32)
      return failure(errc::invalid, fmt::format("'{}' changed while it was written", f.name));
  }
  return storage.put_if(file_in(to.directory, to.file),
                        {snapshot.data + list->begin, list->bytes()}, stop, check);
}

ports::bytes_view named_file(ports::bytes_view snapshot) {
  const auto text = text_in_memory(snapshot);
  if (!has_file_list(text))
    return snapshot;
  const auto list = list_in(text);
  return list ? ports::bytes_view{snapshot.data + list->begin, list->bytes()} : snapshot;
}

result<std::uint64_t> memory_of(ports::storage& storage, const found_step& from,
                                const shard& which) {
  if (!is_list_name(which.name))
    return which.file.bytes;
  const auto text = get_list(storage, from, which);
  if (!text)
    return tl::make_unexpected(text.error());
  return list_from(*text, from, which).map([](const file_list& l) { return l.snapshot_bytes(); });
}

result<void> check_shard_sizes(ports::storage& storage, const found_step& from,
                               const shard& which) {
  std::vector<std::pair<std::string, std::uint64_t>> files{{which.name, which.file.bytes}};
  if (is_list_name(which.name)) {
    const auto list = get_list(storage, from, which).and_then([&](const std::string& text) {
      return list_from(text, from, which);
    });
    if (!list)
      return tl::make_unexpected(list.error());
    for (const auto& f : list->files)
      files.emplace_back(f.name, f.bytes);
  }
  for (const auto& [file, bytes] : files) {
    const auto name = file_in(from.directory, file);
    const auto there = storage.list(name);
    if (!there)
      return tl::make_unexpected(there.error());
    if (there->empty())
      return failure(errc::absent, fmt::format("step {}: '{}' is missing", from.step, name));
    if (there->size() != 1 || there->front().bytes != bytes)
      return failure(errc::invalid, fmt::format("step {}: '{}' has not {} bytes, as its manifest "
                                                "says",
                                                from.step, name, bytes));
  }
  return {};
}

result<void> load_shard(ports::storage& storage, const found_step& from, const shard& which,
                        ports::bytes_room into, const std::atomic<bool>& stop) {
  if (!is_list_name(which.name))
    return get_file(storage, from, which.name, which.file, into, stop);
  const auto text = get_list(storage, from, which);
  if (!text)
    return tl::make_unexpected(text.error());
  const auto list = list_from(*text, from, which);
  if (!list)
    return tl::make_unexpected(list.error());
  if (list->snapshot_bytes() > into.size)
    return failure(errc::invalid, fmt::format("step {} was saved again meanwhile", from.step));
  for (std::size_t i = 0; i < list->files.size(); ++i) {
    const auto& f = list->files[i];
    const auto end = i + 1 < list->files.size() ? list->files[i + 1].begin : list->begin;
    if (auto got = get_file(storage, from, f.name, {f.bytes, f.crc32},
                            {into.data + f.begin, end - f.begin}, stop);
        !got)
      return got;
    std::fill(into.data + f.begin + f.bytes, into.data + end, std::byte{0});
  }
  std::transform(text->begin(), text->end(), into.data + list->begin,
                 [](char c) { return static_cast<std::byte>(c); });
  return {};
}

} // namespace troupe::ckpt
