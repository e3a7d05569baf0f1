#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

// libtroupe_worker.so, as far as the tracing library uses it: worker/troupe_worker.h.

namespace {

struct row {
  std::string name;
  std::size_t members = 0;
  std::uint64_t entered = 0, left = 0, bytes = 0;
  std::uint32_t kind = 0;
};
std::mutex all;
std::array<row, 8> rows;
std::uint64_t feeds = 0;

} // namespace

extern "C" {

void troupe_feeds(std::uint64_t bits) {
  const std::lock_guard lock(all);
  feeds |= bits;
}

std::int32_t troupe_communicator(const char* name, const std::uint32_t*, std::size_t members) {
  const std::lock_guard lock(all);
  for (std::size_t at = 0; at < rows.size(); ++at)
    if (rows[at].name.empty() || rows[at].name == name) {
      rows[at].name = name;
      rows[at].members = members;
      return static_cast<std::int32_t>(at);
    }
  return -1;
}

void troupe_collective_enter(std::int32_t at, std::uint32_t kind, std::uint64_t bytes) {
  const std::lock_guard lock(all);
  auto& one = rows[static_cast<std::size_t>(at)];
  ++one.entered;
  one.kind = kind;
  one.bytes = bytes;
}

void troupe_collective_leave(std::int32_t at) {
  const std::lock_guard lock(all);
  ++rows[static_cast<std::size_t>(at)].left;
}

/// Of the row: how many were entered, and left.
void fake_worker_counted(std::size_t at, std::uint64_t* entered, std::uint64_t* left) {
  const std::lock_guard lock(all);
  *entered = rows[at].entered;
  *left = rows[at].left;
}

void fake_worker_print() {
  const std::lock_guard lock(all);
  std::printf("{\"feeds\": %lu, \"name\": \"%s\", \"members\": %zu, \"entered\": %lu, "
              "\"left\": %lu, \"kind\": %u, \"bytes\": %lu, \"second\": \"%s\"}\n",
              feeds, rows[0].name.c_str(), rows[0].members, rows[0].entered, rows[0].left,
              rows[0].kind, rows[0].bytes, rows[1].name.c_str());
}
}
