#include "launch/wiring/tuning_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::launch {

namespace json = boost::json;

namespace {

constexpr auto loader = "dataloader", size_member = "batch_size", version_member = "version";

/// 0 if it is missing, as DLRover's loader reads it.
std::int64_t whole_number(const json::object& of, const char* name) {
  const auto* found = of.if_contains(name);
  const auto* number = found ? found->if_int64() : nullptr;
  return number ? *number : 0;
}

} // namespace

std::string tuning_defaults() {
  const json::object all{{loader, json::object{{version_member, 0},
                                               {"dataloader_name", ""},
                                               {"last_batch_size", 0},
                                               {size_member, 0},
                                               {"num_workers", 0},
                                               {"pin_memory", 0}}},
                         {"optimizer", json::object{{version_member, 0},
                                                    {"optimizer_name", ""},
                                                    {"learning_rate", 0.0},
                                                    {"weight_decay", 0.0}}},
                         {"restart", false}};
  return json::serialize(all) + "\n";
}

result<void> make_tuning_file(const std::string& path) {
  const auto text = tuning_defaults();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST)
    return {};
  errno = file < 0 ? errno : 0;
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const auto wrong = errno != 0 ? errno : EIO;
  if (file >= 0)
    ::close(file);
  if (!written)
    return failure(errc::unavailable,
                   fmt::format("--auto_tunning: {}: {}", path, std::strerror(wrong)));
  return {};
}

result<tuning_change> with_batch_size(const std::string& text, std::uint32_t size) {
  boost::system::error_code wrong;
  auto all = json::parse(text, wrong);
  auto* settings = wrong ? nullptr : all.if_object();
  if (!settings)
    return failure(errc::invalid, "it is no JSON object");
  auto& part = (*settings)[loader];
  if (part.is_null())
    part.emplace_object();
  auto* of_loader = part.if_object();
  if (!of_loader)
    return failure(errc::invalid, fmt::format("\"{}\" is no JSON object", loader));
  tuning_change change;
  change.before = whole_number(*of_loader, size_member);
  const auto version = whole_number(*of_loader, version_member);
  if (version < 0 || version == std::numeric_limits<std::int64_t>::max())
    return failure(errc::invalid, fmt::format("its version is {}", version));
  change.version = version + 1;
  (*of_loader)["last_batch_size"] = change.before;
  (*of_loader)[size_member] = size;
  (*of_loader)[version_member] = change.version;
  // DLRover's loader writes the size of its script into the file when it is made, unless this says
  // another one: a restart of the workers would undo the setting.
  (*settings)[size_member] = size;
  change.text = json::serialize(all) + "\n";
  return change;
}

} // namespace troupe::launch
