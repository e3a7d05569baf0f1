@0xb64d0f93c7e8a215;

using Cxx = import "/capnp/c++.capnp";
using Membership = import "membership.capnp";
using Rendezvous = import "rendezvous.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: journal — what must survive the master.
#
# Roles     `rendezvous` and the planner (`recovery`) *append*; at its start the planner reads all records back.
# Order     The order of appending. A decision is announced only after its record was acknowledged.
# Repeats   Reading a record twice changes nothing: records state facts, they do not count.
# Size      `journal` drops what a later record replaces (actors/master/journal/compaction): the last world, the newest number, the
#           last sizes, the job's options and the last counted restart of each node remain.
# Loss      A torn last record is dropped by the store; nothing after it was announced.

struct Opened {
  # Retired: which of the job's masters it is, the store itself counts when it is opened.
  job @0 :Text;
  term @1 :UInt64;
}

struct GenerationProposed {
  # Burns the number: no later master may use it for another world.
  generation @0 :UInt64;

  relaunches @1 :UInt32;
  # Nodes that had to be waited for since the first world, this one included: what the budget of relaunches was spent on.
}

struct GenerationSealed {
  world @0 :Rendezvous.World;
  storeAddress @1 :Text;
  storePort @2 :UInt16;
  storeHosted @3 :Bool;
}

struct RestartCounted {
  generation @0 :UInt64;
  restartCount @1 :UInt32;
  # Including this one.
  failures @2 :List(Membership.WorkerFailure);

  node @3 :Text;
  # Whose budget it was counted against: where the root cause was.

  withoutProgress @4 :UInt32;
  # Failed generations in a row that made no progress, including this one.

  restartsUsed @5 :UInt32;
  # What `node` has used of its budget, this failure included, so that older records of the node say nothing more. 0: a journal of an
  # older version, in which each record of the node counts one.

  failedAtStart @6 :UInt32;
  # Failed generations in a row that had failed soon after their start, including this one: the more there are, the longer the next
  # start waits.

  sameAtStart @7 :UInt32;
  # So many of them, the last ones, failed in the same way, the program's own: the first of `failures` says which.

  severalAtStart @8 :Bool;
  # Those were on more than one node.

  nodeLeft @9 :Bool;
  # The node's budget was used up, and it left: another machine takes its place. If that has the node's name, it has used up nothing.
}

struct Concluded {
  success @0 :Bool;
  reason @1 :Text;
  exitCode @2 :UInt8;
  # As in Conclude.
}

struct FarewellEnded {
  # The master → its successor: after the verdict every node has left, or has had its time. The next master that opens this journal
  # begins a new run of the job. Without this record it first tells the verdict to the nodes that have not heard it.
}

struct SizesChanged {
  # A person, or the cluster, has said how large the job may be: instead of what its master was started with.
  nodesMin @0 :UInt32;
  nodesMax @1 :UInt32;
  plansTaken @2 :List(Text);
  # The plans of the cluster that have been done, this one included: by identity, the newest last.
}

struct JobOptionsTaken {
  # What a node said of the job, which its master was not told itself: the next master of the run goes by it before a node is there.
  node @0 :Text;
  options @1 :List(Membership.JobOption);
}

# ---- Inside the master ----

struct ReadBack {
  # An actor that starts → journal: all records so far.
}

struct Recorded {
  # journal → the actor that appended: the record survives this process.
  index @0 :UInt64;
  # 0: only once the disk has room again (journal_options::asked_for).
}
