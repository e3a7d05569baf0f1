#include "launch/worker_environment.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

namespace troupe::launch {

worker_contract contract_of(const launcher_options& o,
                            const std::map<std::string, std::string>& environment,
                            const std::string& host, const std::string& run_directory) {
  worker_contract c;
  c.job = o.rdzv_id;
  c.max_restarts = o.max_restarts;
  c.module = o.module;
  c.no_python = o.no_python;
  c.output = {o.streams, o.role, host, run_directory};
  c.command = o.command;
  c.environment = environment;
  return c;
}

namespace {

std::vector<std::string> command_line(const worker_contract& c, const actors::assignment& a) {
  std::vector<std::string> argv;
  if (!c.no_python) {
    const auto interpreter = c.environment.find("PYTHON_EXEC");
    argv = {interpreter != c.environment.end() ? interpreter->second : "python3", "-u"};
    if (c.module)
      argv.emplace_back("-m");
  }
  const std::string macro = "${local_rank}", value = std::to_string(a.local);
  for (auto argument : c.command) {
    for (auto at = argument.find(macro); at != std::string::npos;
         at = argument.find(macro, at + value.size()))
      argument.replace(at, macro.size(), value);
    argv.push_back(std::move(argument));
  }
  return argv;
}

} // namespace

ports::process_spec worker_spec(const worker_contract& c, const actors::assignment& a) {
  const auto files = files_of(c.output, a);
  auto env = c.environment;
  const auto number = [](auto n) { return std::to_string(n); };
  env["RANK"] = number(a.rank);
  env["LOCAL_RANK"] = number(a.local);
  env["WORLD_SIZE"] = number(a.world_size);
  env["LOCAL_WORLD_SIZE"] = number(a.local_world_size);
  env["GROUP_RANK"] = number(a.group_rank);
  env["GROUP_WORLD_SIZE"] = number(a.group_world_size);
  env["ROLE_NAME"] = c.output.role;
  env["ROLE_RANK"] = number(a.rank);
  env["ROLE_WORLD_SIZE"] = number(a.world_size);
  env["MASTER_ADDR"] = a.store_address;
  env["MASTER_PORT"] = number(a.store_port);
  env["TORCHELASTIC_RESTART_COUNT"] = number(a.restart_count);
  env["TORCHELASTIC_MAX_RESTARTS"] = number(c.max_restarts);
  env["TORCHELASTIC_RUN_ID"] = c.job;
  // Rank 0's worker hosts the store.
  env["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  env["TORCHELASTIC_ERROR_FILE"] = files.error_file;
  env["TORCHELASTIC_SIGNALS_TO_HANDLE"] = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  env.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (a.local_world_size > 1)
    env.emplace("OMP_NUM_THREADS", "1");
  env["TROUPE_GENERATION"] = number(a.which.value);

  ports::process_spec spec;
  spec.argv = command_line(c, a);
  for (const auto& [name, value] : env)
    spec.environment.push_back(name + "=" + value);
  spec.stdout_file = files.stdout_file;
  spec.stderr_file = files.stderr_file;
  return spec;
}

std::optional<std::string> message_in_error_file(const std::string& content) {
  boost::json::error_code bad;
  const auto root = boost::json::parse(content, bad);
  if (bad || !root.is_object())
    return std::nullopt;
  const auto* message = root.as_object().if_contains("message");
  if (message && message->is_object())
    message = message->as_object().if_contains("message");
  if (!message || !message->is_string())
    return std::nullopt;
  const std::string text(message->as_string().c_str(), message->as_string().size());
  return text.substr(0, text.find('\n'));
}

} // namespace troupe::launch
