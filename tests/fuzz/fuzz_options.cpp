#include "launch/options/macros.hpp"
#include "launch/options/options.hpp"

#include <cstdlib>

using namespace troupe::launch;

/// Any command line in any environment comes to options, a text, or a refusal of one line with an
/// exit code; nothing throws. The bytes are lines: "NAME=value" before the first empty one are the
/// environment, the others are arguments.
namespace {

struct question {
  std::vector<std::string> arguments;
  machine_facts machine;
};

question read(const std::uint8_t* data, std::size_t size) {
  question q;
  q.machine.cpus = 8;
  q.machine.gpus = size % 3;
  q.machine.host = "node-1";
  bool environment = true;
  std::string line;
  const auto take = [&] {
    const auto equals = line.find('=');
    if (environment && line.empty())
      environment = false;
    else if (!environment)
      q.arguments.push_back(line);
    else if (equals != std::string::npos)
      q.machine.environment[line.substr(0, equals)] = line.substr(equals + 1);
    line.clear();
  };
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n')
      take();
    else
      line += static_cast<char>(data[i]);
  }
  take();
  return q;
}

void require(bool holds) {
  if (!holds)
    std::abort();
}

template<class Options>
void judge(const parsed<Options>& p) {
  if (const auto* wrong = std::get_if<refusal>(&p))
    require(!wrong->what.empty());
}

void judge_options(const launcher_options& o) {
  if (o.new_token)
    return; // nothing is started
  require(!o.command.empty());
  require(o.nodes_min >= 1 && o.nodes_min <= o.nodes_max &&
          o.nodes_max <= troupe::limits::nodes_max);
  require(o.processes_per_node >= 1 && o.processes_per_node <= troupe::limits::local_world_max);
  require(o.max_restarts <= troupe::limits::restarts_max);
  require(!o.rendezvous.node_rank || *o.rendezvous.node_rank < o.nodes_max);
  require(o.shutdown_timeout >= troupe::duration::zero());
  for (const auto& word : o.command)
    require(substituted(word, {}).size() <= word.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto q = read(data, size);
  const auto p = parse_launcher(q.arguments, q.machine);
  judge(p);
  if (const auto* o = std::get_if<launcher_options>(&p))
    judge_options(*o);
  // The same grammar with other arguments: less often, for the sake of speed.
  if (size % 8 == 0)
    judge(parse_master(q.arguments, q.machine));
  else if (size % 8 == 1)
    judge(parse_shell(q.arguments, q.machine));
  else if (size % 8 == 2)
    judge(parse_dump(q.arguments, q.machine));
  else if (size % 8 == 3)
    judge(parse_probe(q.arguments, q.machine));
  return 0;
}
