// Which nodes membership_core lets in, and what it tells the others.

#include "actors/limits.hpp"
#include "actors/master/membership/membership_core.hpp"
#include "actors/words.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace troupe::actors {

using namespace messages;

/// Two kinds of refusal. What contradicts the job or a bound will not change by itself, so the
/// launcher ends with the reason: a user who has mistyped an option sees it at once, and not after
/// the join timeout. What will pass is refused with `retry`. The job's id comes first: of a node of
/// another job nothing else may be judged.
std::optional<membership_core::refusal>
membership_core::validation_error(instant now, Hello::Reader& hello) const {
  const std::string node = hello.getNode().cStr();
  if (!options_.any_name && options_.job != hello.getJob().cStr())
    return refusal{fmt::format("this master serves job '{}', not '{}' (--rdzv-id)", options_.job,
                               hello.getJob().cStr())};
  // A name is in each message about the node, and in each record: a bound for all of them is here.
  if (node.empty() || node.size() > limits::node_name_max)
    return refusal{fmt::format("a node's name has 1 to {} bytes", limits::node_name_max)};
  // The address and the role of each node are in every Prepare: long ones of many nodes would make
  // a message that no node takes.
  if (hello.getAddress().size() > limits::name_max)
    return refusal{fmt::format("its address has {} bytes; {} are possible (--local-addr)",
                               hello.getAddress().size(), limits::name_max)};
  if (hello.getWorkerRole().size() > limits::name_max)
    return refusal{fmt::format("its workers' role has {} bytes; {} are possible (--role)",
                               hello.getWorkerRole().size(), limits::name_max)};
  for (const auto name : hello.getMachine())
    if (name.size() > limits::name_max || hello.getMachine().size() > limits::machine_names_max)
      return refusal{fmt::format("its machine has {} other names, one of {} bytes; {} of {} bytes "
                                 "are possible (NODE_NAME, NODE_IP)",
                                 hello.getMachine().size(), name.size(), limits::machine_names_max,
                                 limits::name_max)};
  if (hello.getSlots() == 0 || hello.getSlots() > limits::local_world_max)
    return refusal{fmt::format("{} processes on one node; 1 to {} are possible (--nproc-per-node)",
                               hello.getSlots(), limits::local_world_max)};
  // Such a node finds no seat in a Prepare, and would look like one that does not get ready.
  if (hello.getRevision() < protocol_revision)
    return refusal{"its Troupe is older than this master's: install the same version on all nodes"};
  // Two sizes would mean that the node waits for a world which the master never forms. A node or a
  // master that was told none has nothing to contradict.
  if (hello.getNodesMax() != 0 && options_.nodes_max != 0 &&
      (hello.getNodesMin() != options_.nodes_min || hello.getNodesMax() != options_.nodes_max))
    return refusal{fmt::format("this master's job has {}, the node was told {} (--nnodes)",
                               nodes_in_words(options_.nodes_min, options_.nodes_max),
                               nodes_in_words(hello.getNodesMin(), hello.getNodesMax()))};
  if (const auto why = command_.validation_error(command_of(hello.getCommand()),
                                                 hello.getState().getGeneration() != 0))
    return refusal{*why};
  if (auto why = options_validation_error(now, hello))
    return why;
  // By incarnation and not by name: a node that was lost is welcome as soon as it begins anew.
  for (const auto& old : fenced_) {
    if (old.node != node || old.which.value != hello.getIncarnation())
      continue;
    TROUPE_RARE_IF(old.may_rejoin, "membership: a node that was given up comes back as it was");
    return refusal{old.reason, old.may_rejoin};
  }
  return newcomer_validation_error(now, hello);
}

/// A node that returns is never made to wait: it is a member, and its generation would stand still.
/// After the verdict none is, since there is no training left that could be disturbed, and the node
/// must hear the verdict while the master is there.
std::optional<membership_core::refusal>
membership_core::newcomer_validation_error(instant now, Hello::Reader& hello) const {
  const std::string node = hello.getNode().cStr();
  const auto known = members_.find(node);
  const bool returns =
      known != members_.end() && known->second.which.value == hello.getIncarnation();
  const auto wait = returns || job_over_ ? duration::zero() : flapping_.must_wait(now, node);
  if (wait > duration::zero())
    return refusal{
        fmt::format("it was lost again and again; it may join in {}", troupe::in_words(wait)), true,
        wait};
  // `retry`: another node may leave. One that is known takes no further room.
  if (members_.size() >= limits::nodes_max && known == members_.end())
    return refusal{
        fmt::format("the job has {} nodes already, the most there can be", limits::nodes_max),
        true};
  return std::nullopt;
}

/// The node knows best how long its workers may take: a stand-alone master is not told the option,
/// and evicted nodes whose workers needed longer than its own default.
void membership_core::learn_from(effects& out, instant now, Hello::Reader& hello) {
  const auto said =
      std::min<std::uint64_t>(hello.getStopWithinMs(), limits::stop_workers_most.count());
  const auto stop_within =
      said == 0 ? options_.stop_within : duration(std::chrono::milliseconds(said));
  // Never less, though that node may be gone: after the verdict the master must outlive them all.
  longest_stop_ = std::max(longest_stop_, stop_within);
  members_.at(hello.getNode().cStr()).stop_within = stop_within;
  // It found this master late, so its time begins now.
  TROUPE_RARE_IF(job_over_, "membership: a node of the job finds the master after the verdict");
  if (job_over_)
    extend_farewell(now, stop_within);
  const auto command = command_of(hello.getCommand());
  if (command_.learn(command, hello.getState().getGeneration() != 0))
    evict_other_commands(out, now, command);
}

/// What was taken binds until this, though no node is known: one may be dialling.
instant membership_core::options_kept_until() const {
  return std::max(all_known_at_, options_kept_until_.value_or(all_known_at_));
}

bool membership_core::knows_no_node() const {
  return members_.empty() && leaving_.empty();
}

/// A node that runs a generation has taken part with what it was told: no difference is worth its
/// training. After the verdict there is no job any more whose options a node could have.
std::optional<membership_core::refusal>
membership_core::options_validation_error(instant now, Hello::Reader& hello) const {
  if (job_over_ || hello.getState().getGeneration() != 0)
    return std::nullopt;
  const bool is_alone = knows_no_node() && now >= options_kept_until();
  const auto opinion = job_options_.judge(read_job_words(hello.getJobOptions()), is_alone);
  const auto* no = std::get_if<job_options::contradicts>(&opinion);
  if (!no)
    return std::nullopt;
  // The same words may be taken in a moment.
  const bool passes = knows_no_node() && now < options_kept_until();
  return refusal{no->why, passes, passes ? options_kept_until() - now : duration{}};
}

bool membership_core::takes_options(effects& out, instant now, Hello::Reader& hello) {
  const node_name node = hello.getNode().cStr();
  const bool is_alone =
      knows_no_node() && now >= options_kept_until() && hello.getState().getGeneration() == 0;
  const auto opinion = job_options_.judge(read_job_words(hello.getJobOptions()), is_alone);
  const auto* first = job_over_ ? nullptr : std::get_if<job_options::is_first>(&opinion);
  if (!first)
    return false;
  job_options_.take(node, first->words);
  out.push_back(note{
      {log::level::notice,
       "job_options_taken",
       fmt::format("the job has the options that node {} was told: {}", node,
                   first->words.empty() ? "no further ones" : messages::in_words(first->words)),
       {{"node", node}}}});
  out.push_back(take_options{
      node, first->words, author_.write<JobOptionsTaken>({}, [&](auto b) {
        b.setNode(node);
        write_job_words(b.initOptions(static_cast<unsigned>(first->words.size())), first->words);
      })});
  return true;
}

std::vector<std::string> membership_core::differing_options(effects& out, Hello::Reader& hello) {
  const node_name node = hello.getNode().cStr();
  job_options_.settle(node);
  options_kept_until_.reset();
  const auto opinion = job_options_.judge(read_job_words(hello.getJobOptions()), false);
  const auto* fits = std::get_if<job_options::fits>(&opinion);
  if (!fits)
    return {};
  std::vector<std::string> lines;
  for (const auto& each : fits->otherwise) {
    lines.push_back(
        fmt::format("{} {}: the job's master was told {}", each.node.in_words(),
                    each.node.nodes_act ? "counts for this node's own part alone" : "has no effect",
                    each.master.in_words()));
    out.push_back(note{{log::level::warning,
                        "job_option_overruled",
                        fmt::format("node {} was told {}, and this master {}, which counts", node,
                                    each.node.in_words(), each.master.in_words()),
                        {{"node", node}}}});
  }
  for (const auto& word : fits->not_told)
    lines.push_back(fmt::format("the job has {}, which each node acts on too, and this one was not "
                                "told it: give all nodes the same",
                                word.in_words()));
  return lines;
}

/// Only a stand-alone master learns the command, so only there nodes can have been let in for
/// another one: before a node came that trains already.
/// A restarted master may hear a stray of another job at the same address first. The job's own
/// nodes prove by their generation which command is the right one.
void membership_core::evict_other_commands(effects& out, instant now,
                                           const command_identity& command) {
  // Collected first: each loss changes the map.
  std::vector<std::pair<node_name, refusal>> strays;
  for (const auto& [node, known] : members_)
    if (known.command.script != command.script || known.command.arguments != command.arguments)
      if (const auto why = command_.validation_error(known.command, false))
        strays.emplace_back(node, refusal{*why});
  for (const auto& [node, why] : strays) {
    if (const auto session = session_of(node))
      refuse_session(out, *session, node, why);
    lose(out, now, node, why.reason, false);
  }
}

} // namespace troupe::actors
