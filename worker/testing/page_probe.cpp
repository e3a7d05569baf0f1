// Reads a page as the node supervisor does, for tests in other languages: `page_probe DESCRIPTOR`
// prints it as one line of JSON.

#include "diag/progress/page_view.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include <sys/mman.h>

using namespace troupe::diag;

namespace {

std::string told(const communicator_view& of) {
  return fmt::format(
      R"({{"name":"{}","members":{},"entered":{},"left":{},"ends_known":{},"kind":"{}",)"
      R"("waited_ns":{},"members_hash":{}}})",
      of.name, of.members, of.entered, of.left, of.ends_known, name_of(of.kind), of.waited_ns,
      of.members_hash);
}

std::string told(const page_view& of) {
  std::string phases_told, communicators_told;
  for (std::size_t i = 0; i < phases; ++i)
    phases_told +=
        fmt::format(R"({}"{}":{{"entered":{},"longest_ns":{},"p50_ns":{}}})", i == 0 ? "" : ",",
                    name_of(static_cast<phase>(i)), of.each_phase[i].entered,
                    of.each_phase[i].longest_ns, quantile(of.each_phase[i].durations, 0.5));
  for (const auto& each : of.communicators)
    communicators_told += (communicators_told.empty() ? "" : ",") + told(each);
  return fmt::format(
      R"({{"pid":{},"feeds":{},"step":{},"steps_made":{},"step_p50_ns":{},"phase":"{}",)"
      R"("user_phase":"{}","touched_ns":{},"phases":{{{}}},"communicators":[{}]}})",
      of.pid, of.feeds, of.step, of.steps_made, quantile(of.step_durations, 0.5),
      name_of(of.phase_now), of.user_phase, of.touched_ns, phases_told, communicators_told);
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2)
    return 2;
  const auto file = std::atoi(arguments[1]);
  const void* memory = ::mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return 3;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto seen = read_page(*static_cast<const progress_page*>(memory),
                              static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                                  static_cast<std::uint64_t>(now.tv_nsec));
  fmt::print("{}\n", seen ? told(*seen) : "null");
}
