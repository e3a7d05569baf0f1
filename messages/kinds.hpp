#pragma once

#include "messages/checkpoint.capnp.h"
#include "messages/copies.capnp.h"
#include "messages/diagnosis.capnp.h"
#include "messages/journal.capnp.h"
#include "messages/keeper.capnp.h"
#include "messages/membership.capnp.h"
#include "messages/neighbours.capnp.h"
#include "messages/network_check.capnp.h"
#include "messages/operator.capnp.h"
#include "messages/rendezvous.capnp.h"
#include "messages/shell.capnp.h"
#include "messages/stacks.capnp.h"
#include "messages/training.capnp.h"
#include "messages/worker.capnp.h"

#include <capnp/schema.h>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::messages {

template<class... Kinds>
struct kind_list {};

/// Every kind of message there is. A schema's new message is added here and nowhere else.
using all_kinds = kind_list<
    // membership
    Hello, Welcome, Refused, Goodbye, StateRequest, Identity, NodeState, NodePresent, NodeAway,
    NodeLost, NodeReplaced, LinkLost, NodeDeparted, Evict, JobOver, ListNodes, EndLink,
    StateRenewed, Abandon,
    // rendezvous
    Prepare, Prepared, Start, RankOwners, OwnersRequest, Stop, EndWanted, Leave, StandBy,
    Dispensable, WorldProposed, Sealed, SealedRequest,
    // training
    Running, Failed, EndAnswer, Finished, Stopped, Conclude, Underway, WorkerStarted, WorkerEnded,
    WorkerEndNoted, WorkerSignal, GenerationEnded, Interrupt,
    // checkpoint
    ShardReport, CommitStep, StepCommitted, StepFinalized, MasterLinked, SnapshotWanted, SaveNewest,
    Drain, Drained,
    // copies
    CopyBegin, CopyPiece, CopyTaken, CopyEnd, CopyHeld, CopyRefused,
    // diagnosis
    ProgressReport, ProgressWanted, StacksWanted, Diagnosed, Cleared, EndWorker, WatchRequest,
    Watched,
    // stacks
    ProcessStacks, MergedStacks,
    // network check
    NodeProbeWanted, NodeProbed, GroupProbeWanted, GroupProbed, ProbeBegin, ProbePart, ProbeTaken,
    ProbeKey, ProbePassed, DevicesProbeWanted, CheckWanted, NodesChecked,
    // neighbours
    MasterReach, ReachRequest, MasterSought, MasterKnown, NeighboursSaid,
    // shell
    TreeRequest, TreeReport, StacksRequest, StacksReport, ScaleRequest, ScaleReport,
    // journal
    Opened, GenerationProposed, GenerationSealed, RestartCounted, Concluded, FarewellEnded,
    SizesChanged, JobOptionsTaken, ReadBack, Recorded,
    // keeper
    ProcessStarting, ProcessStarted, ProcessNotStarted, ProcessAdopted, ProcessSignal, SweepWanted,
    StoreWanted, Kept, SupervisorFailed, SupervisorOver, ProcessPresent, AllPresented, ProcessEnded,
    StraysAwaited, StraysSwept, UserSignal, StoreOpened, StoreRefused, MasterPlace, CopiesPlace,
    // worker
    WorkerHello, FirstStep, FlightRecord, FlightRecordRequest, FatalSignal, GoOn,
    // operator
    LeadAsked, Leading, JobBegins, JobObject, PodObject, PodGone, PodsTold>;

/// The schema of a kind, or nothing for a kind this build does not know.
std::optional<capnp::StructSchema> schema_of(std::uint64_t kind);

/// "Prepare"; an unknown kind gives its number in hex.
std::string kind_name(std::uint64_t kind);

/// Inverse of kind_name for known kinds.
std::optional<std::uint64_t> kind_named(const std::string& name);

} // namespace troupe::messages
