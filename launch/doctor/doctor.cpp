#include "launch/doctor/doctor.hpp"

#include "launch/doctor/clock.hpp"
#include "launch/doctor/limits.hpp"
#include "launch/doctor/meeting.hpp"
#include "launch/doctor/memory.hpp"
#include "launch/doctor/places.hpp"
#include "launch/doctor/proof.hpp"
#include "launch/doctor/python.hpp"

namespace troupe::launch::doctor {

namespace {

/// A dial and a greeting take five seconds each at most.
constexpr auto most_checks_within = 9s;
/// The interpreter itself is given up at `torch_within`.
constexpr auto python_within = torch_within + 5s;

} // namespace

std::vector<check> checks_for(const doctor_options& o, const machine_facts& machine,
                              const os::open_files_limit& open_files) {
  const auto quick = [](std::string subject, std::function<findings()> examine) {
    return check{std::move(subject), most_checks_within, std::move(examine)};
  };
  const auto& job = o.job;
  return {
      quick("command", [job, machine] { return findings{judge(look_at_command(job, machine))}; }),
      quick("memory", [job] { return findings{judge(look_at_memory(job))}; }),
      quick("/dev/shm",
            [job, machine] { return findings{judge(look_at_shared_mount(job, machine))}; }),
      quick("checkpoint memory", [] { return judge(look_at_snapshots()); }),
      quick("limits", [job, open_files] { return judge(look_at_limits(job, open_files)); }),
      quick("processes", [] { return judge(look_at_processes()); }),
      quick("clock", [job] { return findings{judge(look_at_clock(job))}; }),
      quick("host name", [job, machine] { return findings{judge(look_at_host(job, machine))}; }),
      quick("endpoint", [job, machine] { return judge(look_at_endpoint(job, machine)); }),
      quick("token", [job, machine] { return findings{judge(look_at_proof(job, machine))}; }),
      quick("directories", [o] { return judge(look_at_places(o)); }),
      check{"interpreter", python_within,
            [job, machine] { return judge(look_at_python(job, machine)); }},
  };
}

} // namespace troupe::launch::doctor
