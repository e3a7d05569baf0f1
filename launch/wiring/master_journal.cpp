#include "launch/wiring/master_journal.hpp"

#include "runtime/os/journal/memory_only_journal.hpp"
#include "runtime/os/journal/sqlite_journal.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::launch {

os::journal_owner owner_of(const launcher_options& o, std::uint64_t run) {
  // A job that is alone on its node gets another id each time.
  return {o.rendezvous.standalone ? std::string() : o.rdzv_id, run};
}

os::journal_owner owner_of(const master_program_options& o) {
  return {o.rdzv_id, std::nullopt};
}

result<master_journal> open_master_journal(const std::string& named, const std::string& otherwise,
                                           const os::journal_owner& mine, const log::sink& sink) {
  const bool asked_for = !named.empty();
  const auto& path = asked_for ? named : otherwise;
  auto file = os::sqlite_journal::open(
      path, mine, asked_for ? os::durability::power_cut : os::durability::process);
  if (!file && asked_for)
    return tl::make_unexpected(file.error());
  if (!file) {
    sink("master",
         {log::level::warning,
          "no_journal",
          fmt::format("{}. The master keeps its decisions in memory: if it ends, the next "
                      "one does not know them (--journal FILE puts them elsewhere)",
                      file.error().what),
          {{"journal", path}}});
    return master_journal{std::make_shared<os::memory_only_journal>(), {path, false}};
  }
  for (const auto& notice : (*file)->notices())
    sink("master", notice);
  return master_journal{std::move(*file), {path, asked_for}};
}

} // namespace troupe::launch
