#include "runtime/ports/storage.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

namespace troupe::ports {

namespace {

const char* wrong_with_part(std::string_view part) {
  if (part.empty())
    return "a part of it is empty";
  if (part == "." || part == "..")
    return "it must not contain '.' or '..'";
  if (part.size() > limits::name_max)
    return "a part of it is longer than 255 bytes";
  if (part.substr(0, part_prefix.size()) == part_prefix)
    return "such names are the storage's own";
  return nullptr;
}

const char* wrong_with(std::string_view name) {
  if (name.empty())
    return "it is empty";
  if (name.front() == '/')
    return "it must be relative";
  if (name.size() > limits::storage_name_max)
    return "it is too long";
  if (name.find('\0') != std::string_view::npos)
    return "it contains a zero byte";
  while (true) {
    const auto slash = name.find('/');
    if (const auto* wrong = wrong_with_part(name.substr(0, slash)))
      return wrong;
    if (slash == std::string_view::npos)
      return nullptr;
    name.remove_prefix(slash + 1);
  }
}

} // namespace

result<void> valid_name(std::string_view name) {
  if (const auto* wrong = wrong_with(name))
    return failure(errc::invalid, fmt::format("'{}' is no name for a stored file: {}",
                                              name.substr(0, limits::name_max), wrong));
  return {};
}

} // namespace troupe::ports
