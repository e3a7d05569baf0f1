@0xd3a90b7f51c8e264;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: diagnosis — which rank keeps the others waiting, and why.
#
# Roles     each node's *hang_watchdog* reads how far its training processes are, the master's *diagnosis* compares all ranks and says which
#           one is the culprit.
# Order     ProgressReport from each node now and then, and at once when a rank of it has stood still for longer than it ever does. Then
#           ProgressWanted to the nodes that have not reported since. When the reports of all nodes explain a standstill: Diagnosed to every node, and StacksWanted, which each answers with MergedStacks. With
#           `--hang-action act` EndWorker follows, to the culprit's node; what comes then is an ordinary failure. Cleared if training goes on
#           by itself.
# Repeats   A report replaces the one before it. A second Diagnosed with the same number is a correction of the first.
# Loss      Nothing is repeated on a new link: the next report says all there is to say. A new master knows nothing until then.
# Fence     Envelope.generation, in both directions: what is said of processes that are gone is dropped.

struct CommunicatorProgress {
  # A process group as one rank sees it.
  name @0 :Text;
  members @1 :UInt32;
  # 0: unknown.
  membersHash @2 :UInt64;
  # 0: unknown. Two groups of one name are the same if this is equal too.
  entered @3 :UInt64;
  left @4 :UInt64;
  # Collectives that this rank has called, and those of them that have finished.
  kind @5 :UInt8;
  # Of the last one: diag::collective.
  bytes @6 :UInt64;
  # 0: unknown.
  enteredMs @7 :UInt64;
  # So long ago.
  waitedMs @8 :UInt64;
  # The sum of the times in which one was not finished, since the process began.
  endsUnknown @9 :Bool;
  # It is only seen when one is entered: `left` says nothing.
}

struct RankProgress {
  rank @0 :UInt32;
  localRank @1 :UInt32;
  pid @2 :Int32;
  feeds @3 :UInt64;
  # diag::feed: what reports here at all. 0: only /proc is known of this process.
  steps @4 :UInt64;
  step @5 :UInt64;
  # How many were made, and the number of the last as the script counts.
  phase @6 :UInt8;
  # diag::phase
  userPhase @7 :Text;
  phaseMs @8 :UInt64;
  idleMs @9 :UInt64;
  # So long nothing has changed on its page,
  limitMs @10 :UInt64;
  # and so long may that last, by what was learnt of it.
  ranForMs @11 :UInt64;
  # The time that the process was watched, without pauses of the machine.
  stepMs @12 :UInt32;
  stepP99Ms @13 :UInt32;
  # Median and p99 of its steps.
  busyUs @14 :UInt32;
  usualBusyUs @15 :UInt32;
  # The time in a step that this rank was in no collective: since the report before this one, and in its past. 0: unknown.
  communicators @16 :List(CommunicatorProgress);

  state @17 :UInt8;
  # 'R', 'S', 'D', 'T', 't', 'Z', 'X' of the process; 0: not looked at.
  cpuPermille @18 :UInt32;
  # CPU time of all its threads between two looks, of one core.
  ioMoves @19 :Bool;
  # Bytes were read or written between two looks.
  traced @20 :Bool;
  # A debugger is attached.
  motion @21 :UInt8;
  # 0: not looked at. 1: its stacks differ between looks. 2: they do not. 3: nor do they, and it wanted a processor nearly all the time.
  # 4: it is in one call that may take long: a computation in C, a wait for an answer, a timer or a child. 5: it is ready to run, and others
  # have the processors. 6: its script is over, and it is being closed. 7: as 2, while another thread of it had no processor.
  # 8: asleep until another thread or process of it lets it go on, and one may be about to. 9: as 6, and nothing of it goes on. 10: as 2, in a
  # lock, and no other thread or child of it is at work. 11: as 10, by Python's means: no other process holds it.
  place @22 :Text;
  # Where its main thread is: "read() of its data loader's worker 7". Empty: not looked at.
  evidence @23 :List(Text);
  # One line each: "the file system of /data is full".
  slowPeers @24 :List(Text);
  # Peers of connections that have been retransmitting: "10.0.0.2:4242".
  busySteps @25 :UInt32;
  busyForMs @26 :UInt32;
  # Of how many steps and of how long busyUs is the mean.
}

struct ProgressReport {
  # hang_watchdog → diagnosis
  node @0 :Text;
  ranks @1 :List(RankProgress);
  suspect @2 :Bool;
  # At least one rank has stood still for longer than its limit, and was looked at.
  answers @3 :UInt64;
  # The newest ProgressWanted that this report answers. 0: none was asked.
  over @4 :Over;
  # Why there are no ranks in it.
  enum Over {
    no @0;
    endedWell @1;
    # Their processes have ended by themselves.
    byOrder @2;
    # They are being ended: where they stand says nothing.
  }
}

struct ProgressWanted {
  # diagnosis → hang_watchdog: how far are the ranks now? Answered at once from their pages, and a second time when those that stand still,
  # outside of any collective, were looked at.
  question @0 :UInt64;
}

struct StacksWanted {
  # diagnosis → hang_watchdog, or a shell's request.
  dump @0 :UInt64;
  withinMs @1 :UInt64;
  # What was not read by then is reported as missing.
}

enum HangKind {
  notEntered @0;
  # Others wait in a collective that the culprits have not entered.
  otherCollective @1;
  # The culprits have entered another collective than the others, in this place of the order.
  link @2;
  # All have entered and none leaves.
  alone @3;
  # A rank stands still, and no collective says that others wait for it; or it has entered like the others, and does not take part.
  straggler @4;
  # Alive, but slower than the others.
}

struct Diagnosed {
  # diagnosis → every node's hang_watchdog, and within the master.
  number @0 :UInt64;
  # Of this generation's diagnoses, from 1.
  kind @1 :HangKind;
  culprits @2 :List(UInt32);
  # Ranks. Empty with `link` if no rank stands out.
  sentence @3 :Text;
  # One line for people.
  evidence @4 :List(Text);
  stoodMs @5 :UInt64;
  # How long nothing had moved when this was said.
  score @6 :UInt32;
  # Of a straggler: its busy time by the median of the others', in thousandths.
}

struct Cleared {
  # diagnosis → every node's hang_watchdog: what was diagnosed under this number has passed.
  number @0 :UInt64;
  afterMs @1 :UInt64;
}

struct EndWorker {
  # diagnosis → the agent of the culprit's node: end this rank's process; its generation fails by that.
  rank @0 :UInt32;
  why @1 :Text;
}

# ---- Inside the node supervisor ----

struct WatchRequest {
  # hang_watchdog, worker_channel → agent: which processes run? Answered with Watched, which also follows each start and end.
}

struct WatchedProcess {
  rank @0 :UInt32;
  localRank @1 :UInt32;
  pid @2 :Int32;
}

struct Watched {
  # agent → hang_watchdog, worker_channel: from now on these are the training processes of the generation in the envelope. None: they
  # have ended, or are being ended.
  processes @0 :List(WatchedProcess);
  worldSize @1 :UInt32;
  failedAtNs @2 :UInt64;
  # When the failure was that led to this generation; CLOCK_MONOTONIC of this machine. 0: none did.
  endedWell @3 :Bool;
  # All of them have, by themselves.
}
