#include "runtime/os/stacks/python_stacks.hpp"

#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>

#include <unistd.h>

namespace troupe::os {

namespace {

/// Where the runtime of an interpreter lies, and in which file's mapping.
struct found_runtime {
  std::uint64_t address = 0;
  std::uint64_t bias = 0; ///< added to the file's own addresses
  elf_file* file = nullptr;
  std::string path;
};

bool may_hold_python(const mapping& m) {
  return m.path.find("python", m.path.rfind('/') + 1) != std::string::npos;
}

/// The executable, and libraries that are called so. Of each file the first mapping.
std::vector<const mapping*> candidates(pid_t pid, const std::vector<mapping>& mappings) {
  std::vector<const mapping*> found;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  const auto executable = fmt::format("/proc/{}/exe", pid);
  std::vector<char> path(limits::stacks_path_max);
  const auto size = ::readlink(executable.c_str(), path.data(), path.size());
  const std::string_view own(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  for (const auto& m : mappings)
    if (m.inode != 0 && (m.path == own || may_hold_python(m)) &&
        seen.insert({m.device, m.inode}).second)
      found.push_back(&m);
  return found;
}

result<found_runtime> find_runtime(pid_t pid, const std::vector<mapping>& mappings,
                                   elf_files& files) {
  std::string unread;
  for (const auto* m : candidates(pid, mappings)) {
    const auto file = files.of(pid, *m);
    if (!file) {
      unread = file.error().what;
      continue;
    }
    const auto symbol = (*file)->address_of_symbol("_PyRuntime");
    const auto at = (*file)->address_of_offset(m->offset);
    if (symbol && at)
      return found_runtime{m->begin - *at + *symbol, m->begin - *at, *file, m->path};
  }
  return failure(errc::absent, unread.empty() ? fmt::format("no Python runs in process {}", pid)
                                              : "no Python was found: " + unread);
}

/// The name of a library is kept in the file itself; an executable's may be anything; the path of
/// the standard library below a prefix ("lib/python3.9") is among the constants of each build.
std::optional<std::uint32_t> minor_of(const found_runtime& runtime) {
  if (const auto name = runtime.file->library_name())
    if (const auto minor = minor_in_name(*name))
      return minor;
  if (const auto minor = minor_in_name(runtime.path.substr(runtime.path.rfind('/') + 1)))
    return minor;
  const auto is_name = [](std::string_view text, char before) {
    const auto minor = minor_in_name(text);
    return (before == '\0' || before == '/') && minor && text == fmt::format("python3.{}", *minor);
  };
  const auto folder = runtime.file->constant("python3.", is_name);
  return folder ? minor_in_name(*folder) : std::nullopt;
}

/// As a constant that stands alone; else, as linkers keep a text once that is also the end of a
/// longer one, as any end of the minor version that the names tell.
std::optional<python_release> release_in_texts(const found_runtime& runtime) {
  const auto alone = [](std::string_view text, char before) {
    return before == '\0' && release_in_constant(text, before);
  };
  const auto at_the_end = [](std::string_view text, char before) {
    return release_in_constant(text, before).has_value();
  };
  for (const auto* prefix : {"3.8.", "3.9.", "3.10."})
    if (const auto text = runtime.file->constant(prefix, alone))
      return release_in_constant(*text, '\0');
  const auto minor = minor_of(runtime);
  if (!minor)
    return std::nullopt;
  if (const auto text = runtime.file->constant(fmt::format("3.{}.", *minor), at_the_end))
    return release_in_constant(*text, '\0');
  return python_release{*minor, std::nullopt};
}

result<python_release> release_in(memory_port& memory, const found_runtime& runtime) {
  std::uint64_t version = 0;
  const auto symbol = runtime.file->address_of_symbol("Py_Version"); // from 3.11 on
  if (symbol && read_value(memory, runtime.bias + *symbol, version) && version >> 24 == 3)
    return python_release{static_cast<std::uint32_t>(version >> 16 & 0xff),
                          static_cast<std::uint32_t>(version >> 8 & 0xff)};
  if (const auto release = release_in_texts(runtime))
    return *release;
  return failure(errc::invalid,
                 fmt::format("{} is a Python whose version is not known", runtime.path));
}

/// What a container's processes call themselves, and what this one calls them.
std::map<std::uint64_t, std::uint64_t> names_inside(pid_t pid, const std::vector<pid_t>& threads) {
  std::map<std::uint64_t, std::uint64_t> names;
  for (const auto id : threads) {
    const auto text = kernel_text(fmt::format("/proc/{}/task/{}/status", pid, id));
    const auto at = text.find("\nNSpid:");
    if (at == text.npos)
      continue;
    const auto end = text.find('\n', at + 1);
    const auto begin = text.find_last_of(" \t", end) + 1;
    std::uint64_t inside = 0;
    const auto parsed =
        std::from_chars(text.data() + begin, text.data() + std::min(end, text.size()), inside);
    if (parsed.ec == std::errc())
      names.emplace(inside, id);
  }
  return names;
}

} // namespace

result<python_stacks> python_stacks::of(pid_t pid, const std::vector<mapping>& mappings,
                                        elf_files& files) {
  const auto runtime = find_runtime(pid, mappings, files);
  if (!runtime)
    return tl::make_unexpected(runtime.error());
  python_stacks found(pid);
  if (const auto why = found.memory_.refusal(runtime->address); !why.empty())
    return failure(errc::refused, why);
  found.runtime_ = runtime->address;
  python_release release;
  if (is_described(found.memory_, runtime->address)) {
    const auto described = layout_at(found.memory_, runtime->address);
    if (!described)
      return tl::make_unexpected(described.error());
    found.layout_ = described->layout;
    release = described->release;
  } else {
    const auto version = release_in(found.memory_, *runtime);
    if (!version)
      return tl::make_unexpected(version.error());
    const auto layout = layout_of(*version);
    if (!layout)
      return tl::make_unexpected(layout.error());
    found.layout_ = *layout;
    release = *version;
  }
  found.version_ = to_string(release);
  return found;
}

python_walk python_stacks::sample() {
  memory_.refresh();
  auto walk = walk_python(memory_, runtime_, layout_);
  name_threads(walk.threads);
  return walk;
}

/// Up to 3.10 a thread notes only its handle. That is where glibc and musl keep what they know of
/// it, the kernel's number as well, at a place that is the same for all: it is looked for.
void python_stacks::name_threads(std::vector<python_thread>& threads) {
  if (threads.empty())
    return;
  const auto here = threads_of(pid_);
  const auto inside = names_inside(pid_, here);
  constexpr std::size_t searched = 2'048;
  if (layout_.thread_native_id == python_layout::none) {
    std::vector<std::uint32_t> words(searched / sizeof(std::uint32_t));
    for (std::size_t place = 0; place < words.size(); ++place) {
      std::set<std::uint64_t> named;
      for (auto& t : threads) {
        std::uint32_t id = 0;
        if (read_value(memory_, t.handle + place * sizeof id, id) && inside.count(id) != 0)
          named.insert(t.native_id = id);
      }
      if (named.size() == threads.size())
        break;
      for (auto& t : threads)
        t.native_id = 0;
    }
  }
  for (auto& t : threads) {
    const auto known = inside.find(t.native_id);
    t.native_id = known == inside.end() ? 0 : known->second;
  }
}

} // namespace troupe::os
