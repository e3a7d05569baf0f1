#include "launch/wiring/master_journal.hpp"

#include "kube/limits.hpp"
#include "launch/options/journal_place.hpp"
#include "launch/wiring/api_access.hpp"
#include "launch/wiring/job_cluster.hpp"
#include "runtime/os/journal/memory_only_journal.hpp"
#include "runtime/os/journal/sqlite_journal.hpp"
#include "runtime/os/kube/config_map_journal.hpp"

#include <fmt/format.h>

#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::launch {

namespace {

/// An operator gives it to the pods of its ElasticJobs.
std::string elastic_job_of(const machine_facts& machine) {
  const auto found = machine.environment.find("ELASTIC_JOB_NAME");
  return found == machine.environment.end() ? std::string() : found->second;
}

result<master_journal> open_in_config_map(const std::string& named, const std::string& name,
                                          const os::journal_owner& mine,
                                          const journal_account& account, const log::sink& sink) {
  const auto wrong = [](const error& why) { return failure(why.code, "--journal: " + why.what); };
  auto access = api_access_of(account.account, account.machine);
  if (!access)
    return wrong(access.error());
  const os::config_map_journal::options o{access->name_space, name, elastic_job_of(account.machine),
                                          account.machine.host, random_seed()};
  const auto lost = std::make_shared<std::atomic<bool>>(false);
  const auto noticing = [sink, lost](const std::string& component, const log::event& event) {
    sink(component, event);
    if (event.name == "journal_lost")
      *lost = true;
  };
  auto opened =
      os::config_map_journal::open(os::config_map_journal::calls_to(*access), o, mine, noticing);
  if (!opened)
    return wrong(opened.error());
  for (const auto& notice : (*opened)->notices())
    sink("master", notice);
  actors::journal_options options{named, true};
  options.compact_bytes = limits::config_map_compact_bytes;
  return master_journal{std::move(*opened), options, lost};
}

} // namespace

log::sink until_lost(const master_journal& journal, log::sink to) {
  return
      [to = std::move(to), lost = journal.lost](const std::string& component, const log::event& e) {
        if (!*lost || e.severity < log::level::warning)
          to(component, e);
      };
}

os::journal_owner owner_of(const launcher_options& o, std::uint64_t run) {
  // A job that is alone on its node gets another id each time.
  return {o.rendezvous.standalone ? std::string() : o.rdzv_id, run};
}

os::journal_owner owner_of(const master_program_options& o, const machine_facts& machine) {
  return {o.rdzv_id, std::nullopt, uid_of_job(o.cluster, machine)};
}

result<std::optional<options_on_record>> options_in(ports::journal_store& journal) {
  using records = std::vector<messages::any_msg>;
  const auto done = std::make_shared<std::promise<result<records>>>();
  auto answer = done->get_future();
  journal.read_all([done](result<records> all) { done->set_value(std::move(all)); });
  const auto all = answer.get();
  if (!all)
    return tl::make_unexpected(all.error());
  std::optional<options_on_record> found;
  for (const auto& record : *all)
    if (record.is<messages::JobOptionsTaken>()) {
      auto taken = record.as<messages::JobOptionsTaken>().read();
      found =
          options_on_record{taken->getNode().cStr(), messages::read_job_words(taken->getOptions())};
    }
  return found;
}

result<master_journal> open_master_journal(const std::string& named, const std::string& otherwise,
                                           const os::journal_owner& mine,
                                           const journal_account& account, const log::sink& sink) {
  if (const auto name = config_map_of(named))
    return open_in_config_map(named, *name, mine, account, sink);
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
