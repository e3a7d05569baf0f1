@0xe1b7c9d05a3f4826;
# Before nodes with different numbers of slots (`firstRank`) and restart budgets.

struct Member {
  node @0 :Text;
  address @1 :Text;
  slots @2 :UInt32;
  groupRank @3 :UInt32;
}

struct World {
  generation @0 :UInt64;
  worldSize @1 :UInt32;
  members @2 :List(Member);
}

struct Prepare {
  world @0 :World;
}

struct Prepared {
  node @0 :Text;
}
