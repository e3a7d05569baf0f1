#include "launch/wiring/job_cluster.hpp"

#include "launch/wiring/api_access.hpp"
#include "runtime/os/kube/job_cluster.hpp"

namespace troupe::launch {

std::string uid_of_job(const cluster_options& o, const machine_facts& machine) {
  const auto found = machine.environment.find("JOB_UID");
  return o.elastic_job.empty() || found == machine.environment.end() ? std::string()
                                                                     : found->second;
}

result<std::shared_ptr<ports::cluster>>
cluster_of(const cluster_options& o, const machine_facts& machine, const std::string& job,
           std::pair<std::uint32_t, std::uint32_t> nodes, const log::sink& log) {
  if (o.marks == faulty_machine::is_left && o.elastic_job.empty())
    return std::make_shared<ports::no_cluster>();
  const auto wrong = [&o](const error& why) {
    return failure(why.code,
                   (o.elastic_job.empty() ? "--mark-faulty: " : "--elastic-job: ") + why.what);
  };
  auto access = api_access_of(o.account, machine);
  if (!access)
    return wrong(access.error());
  kube::job_cluster_core::options options;
  options.name_space = access->name_space;
  options.own_pod = machine.host;
  options.job = job;
  if (o.marks != faulty_machine::is_left)
    options.marks = o.marks == faulty_machine::is_cordoned ? kube::machine_mark::cordon
                                                           : kube::machine_mark::taint;
  options.elastic_job = o.elastic_job;
  options.uid = uid_of_job(o, machine);
  options.nodes = {nodes.first, nodes.second};
  options.gang = o.gang;
  options.seed = random_seed();
  auto opened = os::job_cluster::open(std::move(*access), options, log);
  if (!opened)
    return wrong(opened.error());
  return std::shared_ptr<ports::cluster>(std::move(*opened));
}

} // namespace troupe::launch
