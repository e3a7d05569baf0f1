@0xe1b7c9d05a3f4826;
# With racks, and a kind of message that is new.
using Neighbours = import "neighbours.capnp";

struct Member {
  node @0 :Text;
  address @1 :Text;
  slots @2 :UInt32;
  groupRank @3 :UInt32;
  firstRank @4 :UInt32;
  firstRoleRank @5 :UInt32;
  roleWorldSize @6 :UInt32;
  incarnation @7 :UInt64;
  masterIndex @8 :UInt32;
  bulkPort @9 :UInt16;
  rack @10 :Text;
  devices @11 :List(Device);

  struct Device {
    name @0 :Text;
    memoryMb @1 :UInt32 = 80000;
  }
}

struct World {
  generation @0 :UInt64;
  worldSize @1 :UInt32;
  members @2 :List(Member);
  restartCount @3 :UInt32;
  sinceFailureMs @4 :UInt64;
  spareNodes @5 :List(Text);
}

struct Seat {
  member @0 :Member;
  worldSize @1 :UInt32;
  nodes @2 :UInt32;
  restartCount @3 :UInt32;
  sinceFailureMs @4 :UInt64;
  neighbours @5 :List(Neighbours.Neighbour);
  rack @6 :Text;
}

struct Prepare {
  world @0 :World;
  seat @1 :Seat;
  checkpoint @2 :UInt64;
}

struct Prepared {
  node @0 :Text;
  storePort @1 :UInt16;
  storeHosted @2 :Bool;
  bandwidth @3 :Float64;
}

struct Rescale {
  worldSize @0 :UInt32;
}
