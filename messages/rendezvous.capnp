@0xe1b7c9d05a3f4826;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: rendezvous — the master forms a numbered generation out of the nodes that are present.
#
# Roles     the *master* (rendezvous) proposes, each member's *leader* answers.
# Order     per generation: Prepare → Prepared (every member) → Start. A generation is sealed when all have answered; it is journalled
#           before the first Start. Stop may come at any time and ends it.
# Repeats   All are idempotent. A Prepare or Start for the generation a leader is already in (or past) is answered with its present state;
#           one with an older generation is dropped.
# Loss      After a reconnect the master repeats the last directive for that node; the node's answer travels in Hello.state.
# Fence     Envelope.generation is the generation in question; a member that gets a higher Prepare stops everything older first.
# Spares    Who is here and takes no part is told so with StandBy, once on every link.

struct Member {
  node @0 :Text;
  address @1 :Text;
  slots @2 :UInt32;
  groupRank @3 :UInt32;
  firstRank @4 :UInt32;
  # Global rank of its local rank 0; the others follow without a gap.
}

struct World {
  # Who takes part in a generation, in order of group rank. Built once and shared by all members' messages.
  generation @0 :UInt64;
  worldSize @1 :UInt32;
  members @2 :List(Member);
  restartCount @3 :UInt32;
  # Failures charged to the job so far (TORCHELASTIC_RESTART_COUNT).
}

struct Prepare {
  world @0 :World;
}

struct Prepared {
  node @0 :Text;
  storePort @1 :UInt16;
  # From group rank 0: the port on its address of the workers' store, or a free one for it. 0 from the others.
  storeHosted @2 :Bool;
  # The store is open already, hosted by the node supervisor; else group rank 0's first worker has to host it.
}

struct Start {
  storeAddress @0 :Text;
  storePort @1 :UInt16;
  storeHosted @2 :Bool;
  # As group rank 0 said in Prepared.
}

struct Stop {
  # End the generation's processes; the reason is for people.
  reason @0 :Text;
}

struct StandBy {
  # The receiver takes no part for now: it keeps its link and waits for Prepare. The reason is for people.
  reason @0 :Text;
}

# ---- Inside the master ----

struct Sealed {
  # rendezvous → recovery, journal: this world is now the job.
  world @0 :World;
  storeAddress @1 :Text;
  storePort @2 :UInt16;
}

struct Reform {
  # recovery → rendezvous: end the current generation and form the next.
  reason @0 :Text;
  restartCount @1 :UInt32;

  without @2 :Text;
  # A node that shall be given up for good. If no world can be formed without it now, nothing happens but an answer: Indispensable.
}

struct NodesWaiting {
  # rendezvous → recovery: nodes are here that would make the running world larger. Recovery answers with Reform, or not at all.
  reason @0 :Text;
}

struct Indispensable {
  # rendezvous → recovery: the answer to a Reform without a node that cannot be spared.
  node @0 :Text;
}

struct Unformable {
  # rendezvous → recovery: no generation can be formed (join timeout, too few nodes, impossible sizes).
  reason @0 :Text;
}
