#include "launch/wiring/faulty_machines.hpp"

#include "runtime/os/kube/machine_marks.hpp"

namespace troupe::launch {

result<std::shared_ptr<ports::cluster>> node_marks_of(const cluster_options& o,
                                                         const machine_facts& machine,
                                                         const std::string& job,
                                                         const log::sink& log) {
  if (o.marks == faulty_machine::is_left)
    return std::make_shared<ports::no_cluster>();
  const auto wrong = [](const error& why) {
    return failure(why.code, "--mark-faulty: " + why.what);
  };
  auto access = os::access_in_cluster(machine.environment, o.service_account);
  if (!access)
    return wrong(access.error());
  const auto how = o.marks == faulty_machine::is_cordoned ? kube::machine_mark::cordon
                                                          : kube::machine_mark::taint;
  const auto name_space = access->name_space;
  auto marks = os::machine_marks::open(std::move(*access),
                                       {name_space, machine.host, job, how, random_seed()}, log);
  if (!marks)
    return wrong(marks.error());
  return std::shared_ptr<ports::cluster>(std::move(*marks));
}

} // namespace troupe::launch
