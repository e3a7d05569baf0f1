#include "launch/options/options.hpp"
#include "launch/worker/worker_environment.hpp"

#include <boost/json.hpp>

#include <iostream>

/// Reads command lines, one JSON object per line ({"arguments": […], "environment": {…}, "cpus":
/// n}), and writes what each of them comes to: {"printed": …}, {"refused": exit code, "what": …},
/// or the resolved configuration in torchrun's words.

using namespace troupe;
using namespace troupe::launch;
namespace json = boost::json;

namespace {

/// More local ranks than a one-digit list can name.
constexpr std::uint32_t ranks_shown = 13;

json::value seconds(const std::optional<duration>& d) {
  if (!d)
    return nullptr;
  return std::chrono::duration<double>(*d).count();
}

json::array choice(const stream_choice& c) {
  json::array bits;
  for (std::uint32_t rank = 0; rank < ranks_shown; ++rank)
    bits.push_back((c.of(rank).out ? 1 : 0) + (c.of(rank).err ? 2 : 0));
  return bits;
}

const char* name_of(numa_binding n) {
  switch (n) {
  case numa_binding::none:
    break;
  case numa_binding::node:
    return "node";
  case numa_binding::socket:
    return "socket";
  case numa_binding::exclusive:
    return "exclusive";
  case numa_binding::core_complex:
    return "core-complex";
  }
  return "";
}

const char* name_of(start_method s) {
  return s == start_method::fork ? "fork" : s == start_method::forkserver ? "forkserver" : "spawn";
}

json::object rendezvous(const launcher_options& o) {
  const auto& r = o.rendezvous;
  json::object out;
  out["rdzv_backend"] = r.backend == rendezvous_backend::fixed ? "static" : "c10d";
  out["host"] = r.endpoint.host;
  out["port"] = r.endpoint.port;
  out["run_id"] = o.rdzv_id;
  out["node_rank"] = r.node_rank ? json::value(*r.node_rank) : json::value(nullptr);
  out["join_timeout"] = seconds(r.settings.join_timeout);
  out["last_call_timeout"] = seconds(r.settings.last_call_timeout);
  out["read_timeout"] = seconds(r.settings.read_timeout);
  out["is_host"] = r.settings.is_host ? json::value(*r.settings.is_host) : json::value(nullptr);
  out["local_addr"] = o.local_addr;
  return out;
}

json::object streams(const stream_options& s) {
  json::object out;
  out["log_dir"] = s.log_dir;
  out["redirects"] = choice(s.redirects);
  out["tee"] = choice(s.tee);
  out["shown"] = s.shown ? json::value_from(*s.shown) : json::value(nullptr);
  out["prefix_template"] = s.prefix_template;
  out["duplicate_stdout"] = json::value_from(s.duplicate_stdout);
  out["duplicate_stderr"] = json::value_from(s.duplicate_stderr);
  return out;
}

json::array argv_of(const launcher_options& o, const machine_facts& machine, std::uint32_t local) {
  actors::assignment place;
  place.local = local;
  json::array words;
  for (const auto& word : worker_spec(contract_of(o, machine.environment, {}, {}), place).argv)
    words.emplace_back(word);
  return words;
}

json::object described(const launcher_options& o, const machine_facts& machine) {
  auto out = rendezvous(o);
  for (auto& [key, value] : streams(o.streams))
    out[key] = value;
  out["nodes"] = json::array{o.nodes_min, o.nodes_max};
  out["nproc_per_node"] = o.processes_per_node;
  out["max_restarts"] = o.max_restarts;
  out["role"] = o.role;
  out["signals"] = o.signals.words;
  out["shutdown_timeout"] = seconds(o.shutdown_timeout);
  out["virtual_local_rank"] = o.virtual_local_rank;
  out["numa_binding"] = name_of(o.numa);
  out["start_method"] = name_of(o.start);
  out["run_path"] = o.run_path;
  out["omp_threads"] = o.omp_threads ? json::value(*o.omp_threads) : json::value(nullptr);
  out["command"] = json::value_from(o.command);
  out["argv"] = json::array{argv_of(o, machine, 0), argv_of(o, machine, 3)};
  return out;
}

json::object answer_to(const json::object& question) {
  machine_facts machine;
  machine.fresh_id = "fresh";
  machine.cpus = json::value_to<unsigned>(question.at("cpus"));
  machine.environment =
      json::value_to<std::map<std::string, std::string>>(question.at("environment"));
  const auto parsed =
      parse_launcher(json::value_to<std::vector<std::string>>(question.at("arguments")), machine);
  if (const auto* text = std::get_if<just_print>(&parsed))
    return {{"printed", text->text}};
  if (const auto* wrong = std::get_if<refusal>(&parsed))
    return {{"refused", 2}, {"what", wrong->what}};
  return described(std::get<launcher_options>(parsed), machine);
}

} // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << json::serialize(answer_to(json::parse(line).as_object())) << '\n';
}
