#include "launch/options/behind_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace troupe::launch {

namespace {

/// Names that scripts have no use for. Others, such as --log-dir, are often both.
constexpr std::array<std::string_view, 12> of_launchers{
    "--nnodes",      "--nproc-per-node", "--node-rank",    "--standalone",
    "--rdzv-id",     "--rdzv-backend",   "--rdzv-conf",    "--rdzv-endpoint",
    "--master-addr", "--master-port",    "--max-restarts", "--tee"};

} // namespace

std::string misplaced_option(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const auto said = command[i].substr(0, command[i].find('='));
    auto name = said;
    std::replace(name.begin(), name.end(), '_', '-');
    if (std::find(of_launchers.begin(), of_launchers.end(), name) != of_launchers.end())
      return fmt::format("{} stands behind the script, so '{}' gets it and actor-launcher does "
                         "not; options of the launcher go before the script",
                         said, command.front());
  }
  return {};
}

} // namespace troupe::launch
