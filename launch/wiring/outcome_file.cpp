#include "launch/wiring/outcome_file.hpp"

#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace troupe::launch {

namespace {

boost::json::object failure_object(messages::WorkerFailure::Reader f,
                                   const std::string& error_file) {
  return {{"node", os::valid_utf8(f.getNode().cStr())},
          {"rank", f.getRank()},
          {"local_rank", f.getLocalRank()},
          {"pid", f.getPid()},
          {"exit_code", f.getExitCode()},
          {"unix_time_ms", f.getUnixTimeMs()},
          {"message", os::valid_utf8(f.getMessage().cStr())},
          {"error_file", os::valid_utf8(error_file)}};
}

} // namespace

void outcome_file::assigned(const actors::assignment& a, const std::string& error_file) {
  const std::lock_guard lock(mutex_);
  if (a.which != which_) {
    places_.clear();
    ++starts_;
  }
  which_ = a.which;
  places_[a.local] = {a.rank, error_file};
}

std::uint32_t outcome_file::restarts() const {
  const std::lock_guard lock(mutex_);
  return starts_ > 0 ? starts_ - 1 : 0;
}

result<void> outcome_file::write(const std::string& node,
                                 const actors::node_outcome& outcome) const {
  const std::lock_guard lock(mutex_);
  boost::json::array ranks, failures;
  for (const auto& [local, place] : places_)
    ranks.emplace_back(place.rank);
  if (outcome.verdict) {
    auto verdict = outcome.verdict->read();
    for (const auto f : verdict->getFailures()) {
      const auto place = places_.find(f.getLocalRank());
      const bool here = node == f.getNode().cStr() && place != places_.end();
      const auto error_file = here ? place->second.error_file : std::string{};
      std::error_code ignored;
      const bool written = std::filesystem::exists(error_file, ignored);
      failures.push_back(failure_object(f, written ? error_file : std::string{}));
    }
  }
  const auto text =
      boost::json::serialize(boost::json::object{{"success", outcome.success},
                                                 {"reason", os::valid_utf8(outcome.reason)},
                                                 {"generation", which_.value},
                                                 {"ranks", std::move(ranks)},
                                                 {"failures", std::move(failures)}});
  const auto part = path_ + ".part";
  std::ofstream file(part, std::ios::trunc);
  file << text << '\n';
  file.close();
  if (!file || std::rename(part.c_str(), path_.c_str()) != 0)
    return failure(errc::invalid,
                   fmt::format("--outcome-file {}: {}", path_, std::strerror(errno)));
  return {};
}

actors::training_program heard_by(const std::shared_ptr<outcome_file>& outcome,
                                  const output_contract& output, actors::training_program program) {
  program.adopted = [outcome, output,
                     adopted = std::move(program.adopted)](const actors::assignment& a) {
    outcome->assigned(a, files_of(output, a).error_file);
    adopted(a);
  };
  program.spec = [outcome, output, spec = std::move(program.spec)](const actors::assignment& a) {
    outcome->assigned(a, files_of(output, a).error_file);
    return spec(a);
  };
  return program;
}

} // namespace troupe::launch
