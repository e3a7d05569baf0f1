@0xd3a4a0be1f0c9a52;
# With one more role and one more phase.

struct Hello {
  job @0 :Text;
  node @1 :Text;
  incarnation @2 :UInt64;
  role @3 :Role;
  address @4 :Text;
  slots @5 :UInt32;
  wantedRank @6 :Int32 = -1;
  state @7 :NodeState;
  nodesMin @8 :UInt32;
  nodesMax @9 :UInt32;
  stopWithinMs @10 :UInt64;
  command @11 :Command;
  workerRole @12 :Text;
  revision @13 :UInt16;
  bulkPort @14 :UInt16;
  purpose @15 :Purpose;
  switches @16 :List(Text);
  rankIsFound @17 :Bool;
  maxRestarts @18 :UInt32;
  labels @19 :List(Text);

  struct Command {
    text @0 :Text;
    script @1 :UInt64;
    arguments @2 :UInt64;
  }

  enum Role {
    node @0;
    shell @1;
    observer @2;
  }

  enum Purpose {
    copies @0;
    probe @1;
    weights @2;
  }
}

struct NodeState {
  generation @0 :UInt64;
  phase @1 :Phase;
  storePort @2 :UInt16;
  failures @3 :List(WorkerFailure);
  storeHosted @4 :Bool;

  enum Phase {
    idle @0;
    draining @1;
    prepared @2;
    running @3;
    failed @4;
    finished @5;
    checkpointing @6;
  }
}

struct WorkerFailure {
  node @0 :Text;
  localRank @1 :UInt32;
  rank @2 :UInt32;
  pid @3 :Int32;
  exitCode @4 :Int32;
  message @5 :Text;
  unixTimeMs @6 :Int64;
  beforeStart @7 :Bool;
  logFile @8 :Text;
  stack @9 :Text;
}
