#include "launch/options/host_list.hpp"
#include "launch/options/scheduler_environment.hpp"
#include "runtime/base/limits.hpp"

#include <cstdlib>

using namespace troupe;
using namespace troupe::launch;

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

/// Any bytes are a list of hosts within the limits, or one line that says what is wrong with them.
/// As Slurm's variable they come to a master and a number of nodes, or to the same line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto hosts = parse_host_list(text);
  if (hosts) {
    require(!hosts->empty() && hosts->size() <= limits::nodes_max);
    for (const auto& host : *hosts)
      require(!host.empty() && host.size() <= limits::name_max);
  } else {
    require(!hosts.error().what.empty() && hosts.error().what.size() < 512);
  }
  const auto around = find_scheduler_environment({{"SLURM_JOB_NODELIST", text}}, "host");
  if (around && around->master)
    require(hosts && around->nodes == hosts->size() && around->master->host == hosts->front());
  return 0;
}
