@0xb5d7a24f0c6e9183;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: checkpoint — how the shards of a step, written by many nodes, become a complete step.
#
# Roles     each node's *persister* (a *saver* below) writes what its training processes want written, the master's *catalog* decides that a
#           step is complete. The files themselves are touched by savers only: a master need not have the directory.
# Order     ShardReport (of each shard, from the saver that wrote it or could not) → CommitStep to the committer, which wrote the first shard
#           → StepCommitted → CommitStep to the other nodes that wrote: each looks whether it is its directory too, else it is committed
#           there as well → StepCommitted of each → StepFinalized to all that reported.
# Repeats   All are idempotent. A report of a shard of a step that was finalized is answered with StepFinalized again.
# Loss      On a new link a saver repeats its reports of what is not finalized; a new master's catalog knows nothing but that. What was
#           written and never finalized is requested still, in its process's memory.
# Fence     A step is known by its place, number and generation. One of an older generation that lacks shards is given up when a newer
#           generation reports: a saver that has not written its shard by then will not any more.

struct StepKey {
  place @0 :Text;
  # A directory by its absolute path, as the training process named it.
  step @1 :UInt64;
  generation @2 :UInt64;
  # That saved it,
  save @3 :UInt64;
  # and which of its saves it was.
}

struct ShardFile {
  name @0 :Text;
  # Below the step's directory.
  bytes @1 :UInt64;
  crc32 @2 :UInt32;
  node @3 :Text;
}

struct ShardReport {
  node @0 :Text;
  key @1 :StepKey;
  shard @2 :UInt32;
  shards @3 :UInt32;
  # This one of so many; the step has no others.
  worldSize @4 :UInt32;
  saveWithinMs @5 :UInt64;
  # From the first report on all others must have come.
  union {
    written @6 :ShardFile;
    failed @7 :Text;
    # Why, in one line for people.
  }
}

struct CommitStep {
  # Make it complete at your place: all shards are durable.
  key @0 :StepKey;
  worldSize @1 :UInt32;
  files @2 :List(ShardFile);
  sequence @3 :UInt64;
  # Retired: the place of a step in the order of one directory's; saves have an order now (StepKey.save).
  committed @4 :Bool;
  # It is complete at another node's place: see whether it is at yours, and complete it there if that is not the same one.
}

struct StepCommitted {
  node @0 :Text;
  key @1 :StepKey;
  sequence @2 :UInt64;
  # Retired: see CommitStep.
  why @3 :Text;
  # If it could not be.
  complete @4 :Bool;
  shared @5 :Bool;
  # Another node has completed it here: their directories are one.
}

struct StepFinalized {
  # The step is closed: neither the catalog nor a saver does anything more about it.
  key @0 :StepKey;
  complete @1 :Bool;
  why @2 :Text;
  # If it is not complete: one line for people that names rank and node.
  openFrom @3 :UInt64;
  # All saves at this place before this one,
  openFromGeneration @4 :UInt64;
  # which is of this generation, have ended: what is left of them is removed. With a complete step so is what need not be kept any more;
  # not before, as an older step is what all nodes have until this one is.
}

# ---- Inside the node supervisor ----

struct MasterLinked {
  # uplink → persister: the node has a new link to a master. What the master has not answered is said again.
}

struct SnapshotWanted {
  # persister → agent: a process of this node has asked for a snapshot to be written.
}

struct SaveNewest {
  # agent → persister: the newest snapshot of every training process of this node is requested too.
}

struct Drain {
  # agent → persister. Answered with Drained when every snapshot that is requested by now has been finalized or given up, which takes no longer
  # than limits::drain_within.
}

struct Drained {
}
