#include "runtime/ports/testing/memory_storage.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>

namespace troupe::ports::testing {

namespace {

receipt receipt_for(std::string_view content) {
  return {content.size(), libdeflate_crc32(0, content.data(), content.size())};
}

bool is_below(const std::string& name, const std::string& directory) {
  return directory.empty() ||
         (name.size() > directory.size() && name.compare(0, directory.size(), directory) == 0 &&
          name[directory.size()] == '/');
}

} // namespace

result<void> memory_storage::begin(const char* operation, const std::string& name) const {
  if (auto valid = valid_name(name); !valid)
    return valid;
  if (place_.fault)
    if (auto wrong = place_.fault(operation, name))
      return tl::make_unexpected(std::move(*wrong));
  return {};
}

result<const std::string*> memory_storage::find(const std::string& name) const {
  const auto found = place_.files.find(name);
  if (found == place_.files.end())
    return failure(errc::absent, fmt::format("'{}' cannot be read: no such file", name));
  return &found->second;
}

result<receipt> memory_storage::put_if(const std::string& name, bytes_view bytes,
                                       const std::atomic<bool>& stop, const may_replace& may) {
  if (auto begun = begin("put", name); !begun)
    return tl::make_unexpected(std::move(begun.error()));
  if (stop && bytes.size > 0)
    return failure(errc::closed, fmt::format("'{}' was not written: stopped", name));
  for (const auto& [other, content] : place_.files)
    if (is_below(other, name) || is_below(name, other))
      return failure(errc::refused, fmt::format("'{}' cannot be written beside '{}'", name, other));
  if (auto allowed = may(); !allowed)
    return tl::make_unexpected(std::move(allowed.error()));
  auto& content = place_.files[name];
  content.assign(reinterpret_cast<const char*>(bytes.data), bytes.size);
  return receipt_for(content);
}

result<receipt> memory_storage::get(const std::string& name, bytes_room into,
                                    const std::atomic<bool>& stop) {
  if (auto begun = begin("get", name); !begun)
    return tl::make_unexpected(std::move(begun.error()));
  const auto found = find(name);
  if (!found)
    return tl::make_unexpected(found.error());
  const std::string& content = **found;
  if (content.size() > into.size)
    return failure(errc::invalid, fmt::format("'{}' has {} bytes, {} were expected", name,
                                              content.size(), into.size));
  if (stop && !content.empty())
    return failure(errc::closed, fmt::format("'{}' was not read to its end: stopped", name));
  if (!content.empty())
    std::memcpy(into.data, content.data(), content.size());
  return receipt_for(content);
}

result<std::string> memory_storage::get_small(const std::string& name, std::size_t limit) {
  if (auto begun = begin("get", name); !begun)
    return tl::make_unexpected(std::move(begun.error()));
  const auto found = find(name);
  if (!found)
    return tl::make_unexpected(found.error());
  if ((*found)->size() > limit)
    return failure(errc::invalid, fmt::format("'{}' has {} bytes, more than {} are not read", name,
                                              (*found)->size(), limit));
  return **found;
}

result<void> memory_storage::replace(const std::string& name, std::string_view content) {
  auto put = this->put(name, bytes_of(content), never_stops);
  if (!put)
    return tl::make_unexpected(std::move(put.error()));
  return {};
}

result<std::vector<stored_file>> memory_storage::list(const std::string& below) {
  if (!below.empty() || place_.fault)
    if (auto begun = begin("list", below.empty() ? "all" : below); !begun)
      return tl::make_unexpected(std::move(begun.error()));
  std::vector<stored_file> found;
  for (const auto& [name, content] : place_.files)
    if (name == below || is_below(name, below))
      found.push_back({name, content.size()});
  return found;
}

result<std::vector<stored_entry>> memory_storage::entries() {
  if (place_.fault)
    if (auto begun = begin("entries", "all"); !begun)
      return tl::make_unexpected(std::move(begun.error()));
  std::vector<stored_entry> found;
  for (const auto& [name, content] : place_.files) {
    const auto slash = name.find('/');
    stored_entry one{name.substr(0, slash), slash == std::string::npos};
    if (found.empty() || found.back().name != one.name)
      found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const auto& a, const auto& b) { return a.name == b.name; }),
              found.end());
  return found;
}

result<void> memory_storage::remove(const std::string& name) {
  if (auto begun = begin("remove", name); !begun)
    return begun;
  for (auto file = place_.files.begin(); file != place_.files.end();)
    file = file->first == name || is_below(file->first, name) ? place_.files.erase(file)
                                                              : std::next(file);
  return {};
}

} // namespace troupe::ports::testing
