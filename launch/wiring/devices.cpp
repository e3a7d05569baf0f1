#include "launch/wiring/devices.hpp"

#include "launch/options/values.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/process/bounded_child.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// Of this PCI vendor is a device of /sys/class/drm that MetaX has made.
constexpr std::string_view metax_vendor = "0x9999";
/// PyTorch's plug-ins import PyTorch, but to look for one imports nothing.
constexpr std::chrono::seconds plugin_sought_within{20};

/// The files in `directory` that are called `prefix` and a number, and pass `counts`.
unsigned numbered_files(const fs::path& directory, std::string_view prefix,
                        const std::function<bool(const std::string&)>& counts) {
  unsigned found = 0;
  for (const auto& entry : os::entries_of(directory)) {
    const auto name = entry.path().filename().string();
    if (name.compare(0, prefix.size(), prefix) == 0 && digits(name.substr(prefix.size())) &&
        counts(name))
      ++found;
  }
  return found;
}

bool always(const std::string&) {
  return true;
}

std::string folder_of_script_or_here(const launcher_options& o) {
  // Empty where the working directory is gone: nothing is found beside a script then.
  std::error_code gone;
  if (o.command.empty() || o.module)
    return fs::current_path(gone);
  return fs::absolute(o.command.front(), gone).parent_path();
}

unsigned metax_devices(const fs::path& root) {
  std::error_code none;
  if (!fs::exists(root / "dev/mxcd", none))
    return 0;
  return numbered_files(root / "dev/dri", "renderD", [&root](const std::string& name) {
    return stripped(os::contents_of(root / "sys/class/drm" / name / "device/vendor")) ==
           metax_vendor;
  });
}

} // namespace

devices_seen look_for_devices(const std::string& root) {
  const fs::path top(root);
  devices_seen seen{
      {accelerator::ascend, numbered_files(top / "dev", "davinci", always)},
      {accelerator::mthreads, numbered_files(top / "dev", "mtgpu.", always)},
      {accelerator::metax, metax_devices(top)},
  };
  return seen;
}

bool port_is_free(std::uint16_t port) {
  const os::unique_fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int past_connections_count_not = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &past_connections_count_not,
               sizeof past_connections_count_not);
  sockaddr_in everywhere{};
  everywhere.sin_family = AF_INET;
  everywhere.sin_port = htons(port);
  everywhere.sin_addr.s_addr = htonl(INADDR_ANY);
  return socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&everywhere),
                          sizeof everywhere) == 0;
}

std::optional<std::uint16_t> free_ports_from(std::uint16_t wanted, std::uint16_t count,
                                             const std::function<bool(std::uint16_t)>& is_free) {
  constexpr std::uint32_t looked_through = 10'000, ports = 65'536;
  const auto end = std::min(wanted + looked_through, ports);
  std::uint32_t first = wanted;
  for (auto port = first; port < end; ++port) {
    if (!is_free(static_cast<std::uint16_t>(port)))
      first = port + 1;
    else if (port - first + 1 == count)
      return static_cast<std::uint16_t>(first);
  }
  return std::nullopt;
}

void take_hccl_port(launcher_options& o, worker_contract& contract,
                    const std::function<bool(std::uint16_t)>& is_free) {
  if (!o.hccl_port)
    return;
  const auto wanted = *o.hccl_port;
  const auto first = free_ports_from(wanted, hccl_ports, is_free);
  const bool alone = o.nodes_max == 1;
  contract.hccl_port = alone ? first.value_or(wanted) : wanted;
  if (first == wanted)
    return;
  // Of several nodes none may choose alone, and a port that is in use now may be free by then.
  o.remarks.push_back(
      alone && first
          ? fmt::format("HCCL gets the ports from {} on ({}): one of those from {} on is in use",
                        *first, hccl_port_variable, wanted)
          : fmt::format("--training_port {}: one of the {} ports from there on is in use on this "
                        "machine; if HCCL cannot begin, give all nodes of the job another one",
                        wanted, hccl_ports));
}

std::optional<std::string> probed_by_torch(const launcher_options& o) {
  if (o.devices == accelerator::nvidia)
    return std::nullopt;
  const auto& facts = facts_about(o.devices);
  return fmt::format("{},{},{}", facts.torch_device, facts.plugin,
                     o.python.program.empty() ? "python3" : o.python.program);
}

std::optional<std::string> plugin_missing(const launcher_options& o) {
  const auto& facts = facts_about(o.devices);
  const bool runs_python = !o.no_python || o.run_path;
  if (!o.devices_said || *facts.plugin == '\0' || !runs_python || o.python.program.empty())
    return std::nullopt;
  os::child_task task;
  task.program = "/usr/bin/env";
  task.words = {"env", o.python.program, "-c",
                // The path begins with the folder of the script, as it will for the workers.
                fmt::format("import importlib.util as u, sys\n"
                            "if sys.path[:1] == ['']: sys.path[0] = sys.argv[1]\n"
                            "raise SystemExit(0 if u.find_spec('{}') else 3)",
                            facts.plugin),
                folder_of_script_or_here(o)};
  task.output_max = 4'096;
  task.within = plugin_sought_within;
  const auto end = os::run_child(task);
  // A Python that cannot be started is told of with the first worker.
  if (!end || end->how != os::child_end::cause::exited || end->number != 3)
    return std::nullopt;
  return fmt::format("--accelerator {}: {} has no module {}, without which PyTorch knows no {}; "
                     "install it there, or name another Python (--python)",
                     facts.word, o.python.program, facts.plugin, facts.device);
}

} // namespace troupe::launch
