@0xe81f6b0a94d2c753;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# What processes were doing at one moment. No conversation of their own: MergedStacks answers the StacksWanted of diagnosis.capnp, and
# ProcessStacks is what a dump file of a rank consists of, one message for each of its processes.
#
# A name stands here once; everything else means it by its place in `names`, of which the first is 0. A place that is not there makes the whole
# message unreadable.

struct ProcessStacks {
  rank @0 :UInt32;
  worldSize @1 :UInt32;
  pid @2 :UInt64;
  role @3 :Text;
  # Empty for the training process itself; else what the child is for: "data loader worker 7".
  pythonVersion @4 :Text;
  # Empty: no Python was found in the process.
  names @5 :List(Text);
  functions @6 :List(UInt32);
  sources @7 :List(UInt32);
  lines @8 :List(UInt32);
  # Frames, by what they consist of: three lists of one length. The first two have places in `names`; line 0 is unknown.
  threads @9 :List(ThreadStacks);
  # The main thread first.
  missing @10 :List(Text);
  # What could not be read of the process, one line each.
  facts @11 :List(Text);
  # What the kernel says of it, one line each: "the file system of /data is full".
  motion @12 :UInt8;
  # What several looks at it tell. 0: nothing, 1: it moves, 2: it stands still and sleeps, 3: it stands still and uses a processor, 4: it is
  # stopped, 5: it is in one call that may take long, 6: it waits for a processor, 7: it is being closed.
}

struct ThreadStacks {
  id @0 :UInt64;
  # The kernel's; 0: unknown.
  name @1 :Text;
  state @2 :UInt8;
  # A letter of /proc/PID/stat: 'R', 'S', 'D', 'T', 't', 'Z'.
  native @3 :List(UInt32);
  python @4 :List(UInt32);
  # Places of frames in the lists above, the innermost first.
  holdsGil @5 :Bool;
  missing @6 :Text;
  # What could not be read of it; empty: nothing is missing.
  waitsIn @7 :Text;
  # Where in the kernel it waits: "futex_do_wait (futex)"; empty: it runs, or that is not known.
}

struct MergedStacks {
  # hang_watchdog → diagnosis: the stacks of all ranks of a node, merged. Of the generation in the envelope.
  node @0 :Text;
  dump @1 :UInt64;
  # The one that StacksWanted asked for.
  worldSize @2 :UInt32;
  ranks @3 :List(UInt32);
  # Runs of ranks: the first and the last of each, ascending.
  native @4 :StackTrie;
  python @5 :StackTrie;
  missing @6 :List(MissingStacks);
  missingMore @7 :List(UInt32);
  # Ranks of which more is missing than could be said here; runs, as above.
}

struct StackTrie {
  names @0 :List(Text);
  functions @1 :List(UInt32);
  sources @2 :List(UInt32);
  # Frames: two lists of one length with places in `names`.
  parents @3 :List(UInt32);
  # Nodes. 0: a state; else the place of the parent in this list, counted from 1. Parents come before their children.
  frames @4 :List(UInt32);
  threads @5 :List(UInt64);
  ended @6 :List(UInt64);
  runCounts @7 :List(UInt32);
  lineCounts @8 :List(UInt8);
  # Of each node: its frame, how many threads come through it and how many of them end in it, how many of `runs` and of `lines` are its own.
  # The highest bit of a line count: there were more.
  runs @9 :List(UInt32);
  # The first and the last rank of each run, node by node.
  lines @10 :List(UInt32);
  deepStacks @11 :UInt64;
  cutStacks @12 :UInt64;
  leftOutNames @13 :UInt64;
  # What the bounds of tries left out.
}

struct MissingStacks {
  what @0 :Text;
  ranks @1 :List(UInt32);
  # Runs, as above.
}
