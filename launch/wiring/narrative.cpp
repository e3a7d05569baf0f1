#include "launch/wiring/narrative.hpp"

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

} // namespace troupe::launch
