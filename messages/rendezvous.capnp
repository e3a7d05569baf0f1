@0xe1b7c9d05a3f4826;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");
using Neighbours = import "neighbours.capnp";

# Conversation: rendezvous — the master forms a numbered generation out of the nodes that are present.
#
# Roles     the master's *rendezvous* of one generation is the barrier, its *members* (one for each node) talk to the nodes, and each
#           node's *agent* answers.
# Order     per generation: Prepare → Prepared (every member) → Start, RankOwners. A generation is sealed when all have answered; it is journalled
#           before the first Start. Stop may come at any time and ends it; the answer is Stopped (training.capnp).
# Repeats   All are idempotent. A Prepare or Start for the generation an agent is already in (or past) is answered with its present state;
#           one with an older generation is dropped.
# Loss      After a reconnect the master repeats the last directive for that node; the node's answer travels in Hello.state.
# Fence     Envelope.generation is the generation in question; a member that gets a higher Prepare stops everything older first.
# Standbys  A node that is here and takes no part is told so with StandBy, once on every link.

struct Member {
  node @0 :Text;
  address @1 :Text;
  slots @2 :UInt32;
  groupRank @3 :UInt32;
  firstRank @4 :UInt32;
  # Global rank of its local rank 0; the others follow without a gap.

  firstRoleRank @5 :UInt32;
  # ROLE_RANK of its local rank 0: its place among the workers of all nodes that have this node's role (--role).

  roleWorldSize @6 :UInt32;
  # ROLE_WORLD_SIZE: how many workers have this node's role. 0 from a master that does not count roles; then all workers have one.

  incarnation @7 :UInt64;
  # The node supervisor that has this place. Another one that comes under the node's name has none of its workers: the node is lost, and
  # there again. 0 from a master that does not say it.

  masterIndex @8 :UInt32;
  # Which group rank the node with group rank 0 would have, had the network not been looked at (MASTER_INDEX).

  bulkPort @9 :UInt16;
  # As in Hello.
}

struct World {
  # The nodes that take part in a generation, in order of group rank. It stays in the master and its journal: a node is sent its own seat,
  # since 10,000 nodes that are sent all 10,000 members each are 7 GB for one start.
  generation @0 :UInt64;
  worldSize @1 :UInt32;
  members @2 :List(Member);
  restartCount @3 :UInt32;
  # Failures counted against the job so far (TORCHELASTIC_RESTART_COUNT).

  sinceFailureMs @4 :UInt64;
  # When this was said: how long ago the failure became known that led to this generation; 0: none did.
}

struct Seat {
  # One node's part in a generation.
  member @0 :Member;
  worldSize @1 :UInt32;
  nodes @2 :UInt32;
  # GROUP_WORLD_SIZE.

  restartCount @3 :UInt32;
  sinceFailureMs @4 :UInt64;
  # As in World.

  neighbours @5 :List(Neighbours.Neighbour);
  # Other nodes of the world, which this one asks for the master if it misses it: far apart in rank, so that one rack has not all of them.
}

struct Prepare {
  # member → agent: end whatever is older, and get ready to start workers on this seat.
  world @0 :World;
  # Retired: a master before revision 1 sends every node the whole world, in which the node finds its seat. A node before revision 1
  # finds nothing in a Prepare of today; it is refused at the handshake (Hello.revision).

  seat @1 :Seat;
}

struct RankOwners {
  # member → its node, right after Start and again on each new link: which node runs which ranks. A node that holds pieces of snapshots
  # for others compares with it by what right a peer gives: its uplink tells its replicator. Built once and shared by all members' messages;
  # ten bytes for each node.
  nodes @0 :List(UInt64);
  # Fingerprints of the nodes' names (messages/node_names.hpp), in order of group rank.

  slots @1 :List(UInt16);
  # Of each: how many ranks it has. They follow each other without a gap.
}

struct OwnersRequest {
  # replicator → uplink, at its start; answered with the last RankOwners that this node was told, which the replicator before it may have
  # missed. Never leaves the node supervisor.
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
  # End the processes of this generation and of any older one; the reason is for people. Answered with Stopped (training.capnp).
  reason @0 :Text;
}

struct EndWanted {
  # Of this generation the workers are to save and end by themselves, if they know how: it runs on until they do, or a Stop comes. One of
  # them is signalled. The reason is for people. Repeated on each new link as long as the generation runs; answered with EndAnswer and Finished
  # (training.capnp).
  reason @0 :Text;
}

struct Leave {
  # To the members of a generation that has failed and ended: `node` leaves the job, and with it what only its memory has. All of them
  # write their newest snapshots to the checkpoint directory; the node says Goodbye once that is done, and ends. The reason is for its user.
  # Repeated to the node on each new link. It is about that generation: another life under the name is not meant.
  node @0 :Text;
  reason @1 :Text;
}

struct StandBy {
  # The receiver takes no part for now: it keeps its link and waits for Prepare. The reason is for people.
  reason @0 :Text;
}

struct Dispensable {
  # To the members of the generation that runs: whether the others that are here, standbys among them, could form a world if one member
  # were lost. A member that is cut off for long ends its workers if so, and trains on if not. Said when it changes, and on each new
  # link; until then a node goes by Hello.nodesMin and nodesMax, and so it does from each Prepare on.
  othersSuffice @0 :Bool;
}

# ---- Inside the master ----

struct WorldProposed {
  # recovery (the planner) → rendezvous and members: the world that is to be formed, or that an earlier master has sealed.
  world @0 :World;
}

struct Sealed {
  # rendezvous → recovery (the planner), catalog, diagnosis: this world is now the job.
  world @0 :World;
  storeAddress @1 :Text;
  storePort @2 :UInt16;
}

struct SealedRequest {
  # diagnosis → recovery (the planner), when it begins: which world runs? Answered with Sealed, without the store; not at all while none
  # runs, since Sealed comes by itself then.
}

# ---- Retired: what rendezvous and recovery said to each other while they were two halves of one decision. ----

struct Reform {
  reason @0 :Text;
  restartCount @1 :UInt32;
  without @2 :Text;
}

struct NodesWaiting {
  reason @0 :Text;
}

struct Indispensable {
  node @0 :Text;
}

struct Unformable {
  reason @0 :Text;
}
