@0xf90e6c1d2b8a7354;

using Cxx = import "/capnp/c++.capnp";
using Membership = import "membership.capnp";
using Rendezvous = import "rendezvous.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: training — what happens to the processes of a sealed generation.
#
# Roles     each member's *leader* reports, the master's *recovery* judges.
# Order     Running (once all local processes are exec'd), then one of Finished or Failed; further Failed messages of the same generation
#           add failures to the first. Conclude ends the conversation for good.
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

struct Finished {
  # Every local worker exited with 0.
  node @0 :Text;
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
  # leader → its successor: the workers of this generation are started from now on. Generation 0: there is nothing to adopt.
  world @0 :Rendezvous.World;
  storeAddress @1 :Text;
  storePort @2 :UInt16;
  storeHosted @3 :Bool;
  # As in Start.
}
