#include "launch/shell/jobs.hpp"

#include "launch/shell/columns.hpp"
#include "launch/shell/masters.hpp"
#include "launch/shell/terminal.hpp"
#include "launch/shell/tree_lines.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace troupe::launch {

namespace {

/// The same order each time.
void sort(std::vector<job_seen>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const job_seen& a, const job_seen& b) {
    return std::pair(a.job, a.master.port) < std::pair(b.job, b.master.port);
  });
}

} // namespace

job_seen job_in(const std::string& job, const ports::endpoint& master,
                const sup::node_report& tree) {
  job_seen seen{job, master, tree.uptime, "its planner has not answered"};
  for (const auto& child : tree.children)
    if (child.name == "recovery" && !child.phase.empty())
      seen.doing = child.phase;
  return seen;
}

std::string jobs_text(std::vector<job_seen> jobs, std::size_t columns) {
  if (jobs.empty())
    return "no job of this user has its master on this machine\n";
  sort(jobs);
  std::vector<std::array<std::string, 4>> rows{{"JOB", "MASTER", "UP", "DOES"}};
  for (const auto& one : jobs)
    rows.push_back({os::printable(one.job), ports::to_string(one.master), short_time(one.uptime),
                    os::printable(one.doing)});
  std::array<std::size_t, 4> width{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      width[i] = std::max(width[i], columns_of(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      line += fitted(row[i], width[i]) + "  ";
    text += cut_to(line + row.back(), columns == 0 ? std::string::npos : columns) + "\n";
  }
  return text;
}

std::string jobs_json(std::vector<job_seen> jobs) {
  sort(jobs);
  boost::json::array all;
  for (const auto& one : jobs)
    all.push_back(boost::json::object{{"job", os::valid_utf8(one.job)},
                                      {"master", ports::to_string(one.master)},
                                      {"uptime_ms", std::llround(milliseconds_of(one.uptime))},
                                      {"doing", os::valid_utf8(one.doing)}});
  return boost::json::serialize(boost::json::object{{"jobs", std::move(all)}});
}

int show_jobs(const std::vector<std::shared_ptr<ports::transport>>& transports,
              const std::vector<ports::endpoint>& possible, bool json) {
  std::vector<job_seen> jobs;
  const auto masters = masters_among(transports, possible).found;
  for (const auto& master : masters) {
    const auto tree = master->ask_tree({});
    jobs.push_back(tree ? job_in(master->job(), master->master(), *tree)
                        : job_seen{master->job(), master->master(), {}, tree.error().what});
  }
  return print(json ? jobs_json(std::move(jobs)) + "\n"
                    : jobs_text(std::move(jobs), standard_output().columns))
             ? exit_success
             : exit_failure;
}

} // namespace troupe::launch
