#include "launch/wiring/default_token.hpp"

#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/job_token.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace troupe::launch {

namespace fs = std::filesystem;

std::string default_token_file(const machine_facts& machine) {
  const auto variable = [&machine](const char* name) {
    const auto at = machine.environment.find(name);
    return at == machine.environment.end() ? std::string{} : at->second;
  };
  if (auto told = variable(token_file_variable); !told.empty())
    return told;
  if (const auto config = variable("XDG_CONFIG_HOME"); !config.empty())
    return fs::path(config) / "troupe/token";
  const auto home = variable("HOME");
  return home.empty() ? std::string{} : (fs::path(home) / ".config/troupe/token").string();
}

result<std::string> make_default_token(const machine_facts& machine) {
  const auto path = default_token_file(machine);
  if (path.empty())
    return failure(errc::invalid, "--new-token: neither HOME nor TROUPE_TOKEN_FILE says where");
  if (auto made = os::job_token::fresh().write_new(path); !made)
    return tl::make_unexpected(made.error());
  const auto folder = fs::absolute(path).parent_path().string();
  return fmt::format("{} holds a new job token. Copy it to the same place on each node, readable "
                     "by you only:\n"
                     "  ssh OTHER-NODE mkdir -p -m 700 {}\n"
                     "  scp -p {} OTHER-NODE:{}/\n",
                     path, folder, path, folder);
}

void take_default_token(common_options& o, const ports::endpoint& master,
                        const machine_facts& machine) {
  if (o.reaches_other_machines() || os::is_loopback(master.host))
    return;
  const auto path = default_token_file(machine);
  std::error_code unknown;
  if (!path.empty() && fs::exists(path, unknown))
    o.token_file = path;
}

} // namespace troupe::launch
