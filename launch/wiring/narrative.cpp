#include "launch/wiring/narrative.hpp"

#include "runtime/ports/process.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <set>

namespace troupe::launch {

log::sink told_by_node(log::sink to) {
  static const std::set<std::string> notices_of_a_node{
      "link_established", "workers_started", "workers_finished",   "stopping_workers",
      "workers_gone",     "worker_failed",   "worker_not_started", "standing_by"};
  return [to = std::move(to)](const std::string& component, const log::event& e) {
    auto told = e;
    if (e.severity == log::level::info && notices_of_a_node.count(e.name))
      told.severity = log::level::notice;
    to(component, told);
  };
}

namespace {

std::string counted(std::uint32_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string nodes_in_words(const launcher_options& o) {
  return o.nodes_min == o.nodes_max ? counted(o.nodes_max, "node")
                                    : fmt::format("{} to {} nodes", o.nodes_min, o.nodes_max);
}

log::event job_line(const launcher_options& o, const std::string& today) {
  const bool by_python = o.run_path || !o.no_python;
  const auto named = o.rdzv_id == "none" ? " (no --rdzv-id)" : " " + o.rdzv_id;
  return {log::level::notice,
          "job",
          fmt::format("job{}, {}: {}, {} on this one{}", named, today, nodes_in_words(o),
                      counted(o.processes_per_node, "worker"),
                      by_python ? fmt::format("; {} ({})", o.python.program, o.python.from) : ""),
          {{"job", o.rdzv_id},
           {"nodes_min", std::int64_t{o.nodes_min}},
           {"nodes_max", std::int64_t{o.nodes_max}},
           {"workers", std::int64_t{o.processes_per_node}},
           {"python", by_python ? o.python.program : ""}}};
}

log::event meeting_line(const rendezvous_options& r) {
  return {log::level::info,
          "endpoint",
          fmt::format("the job meets at {} ({}){}", ports::to_string(r.endpoint), r.endpoint_from,
                      r.node_rank ? fmt::format("; node rank {}", *r.node_rank) : ""),
          {{"endpoint", ports::to_string(r.endpoint)}, {"from", r.endpoint_from}}};
}

} // namespace

std::vector<log::event> remarks_on(const launcher_options& o) {
  std::vector<log::event> lines;
  for (const auto& remark : o.remarks)
    lines.push_back({log::level::notice, "remark", remark, {}});
  if (!o.rendezvous.standalone)
    lines.push_back(meeting_line(o.rendezvous));
  return lines;
}

std::vector<log::event> first_lines(const launcher_options& o, const std::string& today,
                                    const std::string& log_directory,
                                    const ports::endpoint& master) {
  std::vector<log::event> lines{job_line(o, today)};
  if (!log_directory.empty())
    lines.push_back({log::level::notice,
                     "log_directory",
                     "the workers' files are in " + log_directory,
                     {{"directory", log_directory}}});
  const auto where = ports::to_string(master);
  lines.push_back({log::level::notice,
                   "where_to_look",
                   "to look into the job: actor-shell tree --master " + where,
                   {{"endpoint", where}}});
  return lines;
}

log::sink told_once_linked(log::sink to, const std::string& component,
                           std::vector<log::event> lines) {
  const auto told = std::make_shared<std::once_flag>();
  return [to = std::move(to), component, lines = std::move(lines), told](const std::string& from,
                                                                         const log::event& e) {
    if (e.name == "link_established")
      std::call_once(*told, [&] {
        for (const auto& line : lines)
          to(component, line);
      });
    to(from, e);
  };
}

log::event last_line(const run_end& r) {
  const auto how = r.stopped_by != 0
                       ? "stopped by " + ports::to_string(ports::exit_status{true, r.stopped_by})
                   : r.success ? std::string("succeeded")
                               : "failed";
  return {
      log::level::notice,
      "run_ended",
      fmt::format("{} after {}{}{}{}", how, in_words(r.took),
                  r.restarts == 0 ? "" : ", with " + counted(r.restarts, "restart"),
                  r.checkpoint.empty() ? "" : "; the last complete checkpoint is " + r.checkpoint,
                  r.log_directory.empty() ? "" : "; the workers' files are in " + r.log_directory),
      {{"success", r.success},
       {"restarts", std::int64_t{r.restarts}},
       {"took_ms", milliseconds_of(r.took)},
       {"checkpoint", r.checkpoint},
       {"directory", r.log_directory}}};
}

} // namespace troupe::launch
