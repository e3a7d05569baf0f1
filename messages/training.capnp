@0xf90e6c1d2b8a7354;

using Cxx = import "/capnp/c++.capnp";
using Membership = import "membership.capnp";
using Rendezvous = import "rendezvous.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: training — what happens to the processes of a sealed generation.
#
# Roles     each member's *agent* reports, the master's *recovery* judges.
# Order     Running (once all local processes are exec'd), EndAnswer after an EndWanted (rendezvous.capnp), then one of Finished or Failed; further Failed messages of the same generation
#           add failures to the first. Stopped follows when no process of a generation that failed or was stopped is left; the master forms
#           no other before every member has said so, or is lost. Conclude ends the conversation for good.
# Repeats   Idempotent per generation and node.
# Loss      After a reconnect Hello.state says the same.
# Fence     Envelope.generation; recovery drops reports about any other than the current one.

struct Running {
  node @0 :Text;
  pids @1 :List(Int32);
  # In order of local rank.
}

struct Failed {
  node @0 :Text;
  failures @1 :List(Membership.WorkerFailure);
  # All of this generation on this node so far, oldest first. Processes that we stopped are not failures, unless they had written
  # their error file before.

  ended @2 :Bool;
  # No process of this generation is left on this node: nothing follows.
}

struct EndAnswer {
  # To EndWanted (rendezvous.capnp).
  node @0 :Text;
  begun @1 :Bool;
  # Since it was passed on a local worker has ended, or a snapshot of one is to be written: said once. Else: no worker here takes the
  # signal, so nothing will come of it.
}

struct Finished {
  # Every local worker exited with 0.
  node @0 :Text;
  asked @1 :Bool;
  # After EndWanted had been passed on to them: the work need not be done.
}

struct Stopped {
  # No process of the generation in the envelope, nor of an older one, is left on this node, nor anything that they left behind.
  # Sent when the processes of a generation that failed or was stopped are gone, without being asked, and as the answer to every
  # Stop: at once if no such process is there, also for a generation that the node has never heard of. Never sooner than the
  # processes are gone. A generation that finished is followed by Stopped only if there is a Stop for it.
  node @0 :Text;
  failures @1 :List(Membership.WorkerFailure);
  # As in the last Failed of that generation; none if nothing failed.
}

struct Conclude {
  # The verdict. The receiver ends what is left, tells its user, and goes.
  success @0 :Bool;
  reason @1 :Text;
  failures @2 :List(Membership.WorkerFailure);
  # Root cause first, then in the order in which the master heard of them.

  exitCode @3 :UInt8;
  # What launchers exit with after this verdict; 0: as they do after any.
}

# ---- Inside the node supervisor ----

struct Underway {
  # agent → its successor: the workers of this generation are started from now on. Generation 0: there is nothing to adopt.
  world @0 :Rendezvous.World;
  # Retired: see Prepare.

  storeAddress @1 :Text;
  storePort @2 :UInt16;
  storeHosted @3 :Bool;
  # As in Start.

  seat @4 :Rendezvous.Seat;
}

# The agent and the workers of a generation, each of which owns one training process. Starting and stopping is no part of this: the
# supervisors do both. A worker sends WorkerStarted at most once, then WorkerEnded once; one whose process could not be started sends
# only WorkerEnded. Fence: Envelope.generation, compared with the generation whose workers the agent has started.

struct WorkerStarted {
  # worker → agent: the process is there.
  localRank @0 :UInt32;
  pid @1 :Int32;
}

struct WorkerEnded {
  # worker → agent: the process is gone, or could not be started. Answered with WorkerEndNoted, and only then does the worker end
  # itself: what the agent does first (the failure is reported, the handover is withdrawn) is done before the siblings are stopped.
  report @0 :Membership.WorkerFailure;
  # How it ended and why. `exitCode` 0: it ended well, and the rest says nothing. The agent fills in `node` and `host`.

  signalled @1 :Bool;
  # The worker had sent a signal that is to end the process, by order of its supervisor.
  signalledUs @2 :UInt64;
  # With `signalled`: how long before this message the first such signal was sent.
}

struct WorkerEndNoted {
  # The answer to WorkerEnded.
}

struct WorkerSignal {
  # launcher → agent → worker: the user's signal for the process, which goes on running unless it takes that differently. Means nothing to a
  # process that is to end.
  number @0 :Int32;
  alone @1 :Bool;
  # For the process alone, and not for its whole group.
}

struct GenerationEnded {
  # worker_group → agent: the supervisor of the generation in the envelope has ended, and with it all its workers.
  why @0 :Text;
  # Empty: all of them ended well, or as they were asked to.
}

struct Interrupt {
  # launcher → agent: the user wants the job to end. The second one kills.
  signal @0 :Int32;
  endsJob @1 :Bool;
  # The launcher runs the job's master, which ends the job at the same signal.
}
