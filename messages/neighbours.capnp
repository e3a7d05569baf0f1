@0xb7d40c6e93a1f825;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: neighbours — is the master away, or this node?
#
# Roles     the *uplink* of a node that misses its master tells its *neighbours*, which asks those of up to three other nodes of the world; these
#           answer. A bulk link, with a Hello of role peer and purpose neighbours; no Welcome follows.
# Order     ReachRequest of a new *neighbours*. MasterReach inside the node, whenever it changes. MasterSought on each link → MasterKnown, and the one
#           that asked closes. When it is known, NeighboursSaid to the uplink, once for each time that the master is missed.
# Repeats   Each round asks anew.
# Loss      A question that is lost was not answered, which is what it is about.
# Fence     MasterReach.outage, repeated in NeighboursSaid: what is said of an earlier time is dropped. MasterSought.follows: an older master than
#           the one that asks has followed is none.

struct Neighbour {
  # Another node of a world.
  node @0 :Text;
  address @1 :Text;
  port @2 :UInt16;
  # Where its bulk links are dialled. 0: nowhere.
}

struct MasterReach {
  # uplink → neighbours: how this node reaches its master.
  reach @0 :Reach;
  neighbours @1 :List(Neighbour);
  # Of the world that runs here, at most limits::neighbours_max.
  outage @2 :UInt64;
  # Counts the times that the master was missed.
  follows @3 :UInt64;
  # The term of the newest master that this node has followed.

  enum Reach {
    absent @0;
    # There is no link, and nothing depends on why.
    linked @1;
    missed @2;
    # There is no link, the network does not answer, and others may have been given the ranks of this node.
  }
}

struct ReachRequest {
  # neighbours → uplink, at its start; answered with MasterReach.
}

struct MasterSought {
  # To a neighbour: has it a link to the job's master?
  follows @0 :UInt64;
  # An older one than this does not count.
}

struct MasterKnown {
  linked @0 :Bool;
  sinceMs @1 :UInt64;
  # For so long. A link that is younger than the absence of the master says that it is back, and not that it was there.
}

struct NeighboursSaid {
  # neighbours → uplink
  hasIt @0 :Text;
  # The node that has a link to the master. Empty: of those that were asked none answers.
  asked @1 :UInt32;
  outage @2 :UInt64;
  # As in MasterReach.
}
