@0xd3a4a0be1f0c9a52;
# Before a node could ask for a rank, and before workers had log files.

struct Hello {
  job @0 :Text;
  node @1 :Text;
  incarnation @2 :UInt64;
  role @3 :Role;
  address @4 :Text;
  slots @5 :UInt32;

  enum Role {
    node @0;
  }
}

struct WorkerFailure {
  node @0 :Text;
  localRank @1 :UInt32;
  rank @2 :UInt32;
  pid @3 :Int32;
  exitCode @4 :Int32;
  message @5 :Text;
}
