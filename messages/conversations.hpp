#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <type_traits>
#include <utility>

/// Which kinds each conversation has, and the way from a kind known at run time to its receiver.
///
/// A link and the journal hand out messages of any kind. Without a list a proxy asks for one kind
/// after the other, and a kind that a schema gains later is dropped in silence. With it the
/// compiler refuses a proxy that has no receiver for a kind of its conversation.
namespace troupe::messages {

/// The first message of a link, and the answers to it.
using handshake = kind_list<Hello, Welcome, Refused>;

/// A node says to its master how its part in a generation goes: for the node's member.
using part_reports = kind_list<Prepared, Running, Failed, EndAnswer, Finished, Stopped>;

/// All that a node says to its master after the handshake.
using node_reports =
    kind_list<Prepared, Running, Failed, EndAnswer, Finished, Stopped, ShardReport, StepCommitted,
              TreeReport, Goodbye, ProgressReport, MergedStacks, NodeProbed, GroupProbed>;

/// What the planner hears of a member's node.
using judged_reports = kind_list<Running, Failed, EndAnswer, Finished, Stopped>;

/// The master tells a node's uplink what it needs to know should it be cut off.
using uplink_directives = kind_list<Dispensable>;

/// All else that the master says to a node after the handshake.
using directives = kind_list<Prepare, Start, RankOwners, Stop, EndWanted, Leave, StandBy, Conclude,
                             CommitStep, StepFinalized, TreeRequest, ProgressWanted, StacksWanted,
                             Diagnosed, Cleared, EndWorker, NodeProbeWanted, GroupProbeWanted>;

/// A shell asks its master, and the answer.
using shell_questions = kind_list<TreeRequest, StacksRequest, ScaleRequest>;
using shell_answers = kind_list<TreeReport, StacksReport, ScaleReport>;

/// Between nodes, on bulk links: for copies of snapshots, to probe what is between them, and to ask
/// for the master.
using copies = kind_list<CopyBegin, CopyPiece, CopyTaken, CopyEnd, CopyHeld, CopyRefused>;
using group_probe = kind_list<ProbeBegin, ProbePart, ProbeTaken, ProbeKey, ProbePassed>;
using neighbour_words = kind_list<MasterSought, MasterKnown>;

/// A node supervisor's child probes devices, and answers.
using probe_wishes = kind_list<NodeProbeWanted, DevicesProbeWanted>;
using probe_answers = kind_list<NodeProbed, GroupProbed, ProbeKey>;

/// What a dump file of a rank consists of.
using dump_kinds = kind_list<ProcessStacks>;

/// Inside the master: what membership publishes, and the rest.
using membership_news = kind_list<NodePresent, NodeAway, NodeLost>;
using master_internal =
    kind_list<WorldProposed, Sealed, SealedRequest, NodeReplaced, LinkLost, NodeDeparted, Evict,
              JobOver, ListNodes, EndLink, Abandon, ReadBack, Recorded, CheckWanted, NodesChecked>;

/// Inside a node supervisor, and what it leaves for its successor.
using node_internal =
    kind_list<StateRequest, NodeState, Identity, Underway, WorkerStarted, WorkerEnded,
              WorkerEndNoted, WorkerSignal, GenerationEnded, Interrupt, Abandon, StateRenewed,
              MasterLinked, SnapshotWanted, SaveNewest, Drain, Drained, OwnersRequest, MasterPlace,
              CopiesPlace, WatchRequest, Watched, MasterReach, ReachRequest, NeighboursSaid>;

/// In the journal.
using journal_records = kind_list<Opened, GenerationProposed, GenerationSealed, RestartCounted,
                                  Concluded, FarewellEnded, SizesChanged, JobOptionsTaken>;

/// A node supervisor orders its keeper, and the keeper tells it.
using keeper_orders =
    kind_list<ProcessStarting, ProcessStarted, ProcessNotStarted, ProcessAdopted, ProcessSignal,
              SweepWanted, StoreWanted, Kept, SupervisorFailed, SupervisorOver>;
using keeper_news =
    kind_list<ProcessPresent, AllPresented, ProcessEnded, StraysAwaited, StraysSwept, UserSignal>;

/// A training process says to its node supervisor, and is asked by it.
using worker_news = kind_list<WorkerHello, FirstStep, FlightRecord, FatalSignal>;
using worker_requests = kind_list<FlightRecordRequest, GoOn>;

/// The workers' store, a process of its own, answers the supervisor that ordered it.
using store_answers = kind_list<StoreOpened, StoreRefused>;

/// The operator's actors tell each other.
using operator_internal =
    kind_list<LeadAsked, Leading, JobBegins, JobObject, PodObject, PodGone, PodsTold>;

namespace detail {

template<class T>
struct tag {
  using type = T;
};

template<class T, class List>
inline constexpr bool is_in = false;
template<class T, class... Kinds>
inline constexpr bool is_in<T, kind_list<Kinds...>> = (std::is_same_v<T, Kinds> || ...);

template<class T, class... Conversations>
inline constexpr bool is_in_one_of = (is_in<T, Conversations> || ...);

template<class List, class... Conversations>
inline constexpr bool each_in_one_of = false;
template<class... Kinds, class... Conversations>
inline constexpr bool each_in_one_of<kind_list<Kinds...>, Conversations...> =
    (is_in_one_of<Kinds, Conversations...> && ...);

} // namespace detail

static_assert(
    detail::each_in_one_of<
        all_kinds, handshake, node_reports, uplink_directives, directives, shell_questions,
        shell_answers, copies, group_probe, neighbour_words, probe_wishes, probe_answers,
        dump_kinds, membership_news, master_internal, node_internal, journal_records, keeper_orders,
        keeper_news, worker_news, worker_requests, store_answers, operator_internal>,
    "a new kind of message is said in no conversation: add it to one");
static_assert(detail::each_in_one_of<part_reports, node_reports> &&
              detail::each_in_one_of<judged_reports, part_reports>);

/// Several lambdas as one function: the most special one that fits a kind receives it.
template<class... Lambdas>
struct receivers : Lambdas... {
  using Lambdas::operator()...;
};
template<class... Lambdas>
receivers(Lambdas...) -> receivers<Lambdas...>;

/// Gives the message to `receive` as the kind it is, if that is one of `Kinds`; else answers false.
/// `receive` takes `const msg<T>&` for each of them, or this does not compile.
template<class... Kinds, class Receive>
bool route(const any_msg& m, kind_list<Kinds...>, Receive&& receive) {
  const auto if_it_is = [&m, &receive](auto kind) {
    using T = typename decltype(kind)::type;
    if (!m.is<T>())
      return false;
    receive(m.as<T>());
    return true;
  };
  return (if_it_is(detail::tag<Kinds>{}) || ...);
}

} // namespace troupe::messages
