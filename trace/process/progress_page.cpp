#include "trace/process/progress_page.hpp"

#include "trace/process/real.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace troupe::trace {

namespace {

constexpr const char* library = "libtroupe_worker.so";
/// Numbers of members that are told one by one.
constexpr std::uint32_t members_told = 1024;

} // namespace

void progress_page::look() {
  if (found())
    return;
  const auto find = [](const char* name) { return symbol_in_loaded(library, name); };
  void* const communicator = find("troupe_communicator");
  void* const leave = find("troupe_collective_leave");
  void* const enter = find("troupe_collective_enter");
  void* const feeds = find("troupe_feeds");
  if (!communicator || !leave || !enter || !feeds)
    return;
  communicator_.store(reinterpret_cast<communicator_function*>(communicator));
  leave_.store(reinterpret_cast<leave_function*>(leave));
  enter_.store(reinterpret_cast<enter_function*>(enter), std::memory_order_release);
  reinterpret_cast<feeds_function*>(feeds)(static_cast<std::uint64_t>(diag::feed::trace));
}

std::uint32_t progress_page::row_of(std::uint64_t name, std::uint32_t members,
                                    std::uint32_t world) const {
  if (!found())
    return 0;
  std::array<char, diag::communicator_words::name_bytes> shown{};
  std::snprintf(shown.data(), shown.size(), "nccl-%016" PRIx64, name);
  std::array<std::uint32_t, members_told> ranks{};
  std::size_t told = 0;
  if (members == world && members <= members_told)
    for (; told < members; ++told)
      ranks[told] = static_cast<std::uint32_t>(told);
  const auto row = communicator_.load()(shown.data(), ranks.data(), told);
  return row < 0 ? 0 : static_cast<std::uint32_t>(row) + 1;
}

void progress_page::entered(std::uint32_t row, diag::collective kind, std::uint64_t bytes) const {
  if (row > 0)
    enter_.load(std::memory_order_acquire)(static_cast<std::int32_t>(row - 1),
                                           static_cast<std::uint32_t>(kind), bytes);
}

void progress_page::left(std::uint32_t row) const {
  if (row > 0)
    leave_.load(std::memory_order_acquire)(static_cast<std::int32_t>(row - 1));
}

} // namespace troupe::trace
