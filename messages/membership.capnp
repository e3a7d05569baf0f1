@0xd3a4a0be1f0c9a52;

using Cxx = import "/capnp/c++.capnp";
using Rendezvous = import "rendezvous.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: membership — a node supervisor (or a shell) introduces itself to the master.
#
# Roles     the *dialler* (node supervisor, actor-shell) and the *master*.
# Order     Hello is the first frame on every link, Welcome or Refused the first answer; a Refused is followed by the end of the link.
# Repeats   Hello is sent anew on every link. The same name and incarnation is the same node come back; the same name with another
#           incarnation replaces the older one, once that has ended its workers or its time for that is over; the older one is fenced.
# Loss      When a link drops anything in flight is lost in both directions. Nothing needs to be remembered: the next Hello carries
#           the node's whole state, and the master repeats its current directive after Welcome.
# Inside    `membership` turns hellos and lost links into NodePresent, NodeAway and NodeLost for the planner and for the node's member in
#           the generation that is up.

struct Hello {
  job @0 :Text;
  # The job's id (--rdzv-id). Another job's master refuses.

  node @1 :Text;
  # Unique within the job; with TLS it must be a subject alternative name of the peer's certificate.

  incarnation @2 :UInt64;

  role @3 :Role;

  address @4 :Text;
  # Where other nodes reach this one: --local-addr, else the address from which this link comes. Never a loopback address, unless the
  # master was dialled at one. At most limits::name_max bytes.

  slots @5 :UInt32;
  # Training processes this node runs (--nproc-per-node).

  wantedRank @6 :Int32 = -1;
  # --node-rank, or -1 for "any".

  state @7 :NodeState;

  nodesMin @8 :UInt32;
  nodesMax @9 :UInt32;
  # The size of the job as this node was told (--nnodes), or 0 if it was not. A master that was told another one refuses.

  stopWithinMs @10 :UInt64;
  # How long this node's workers may take to end (--shutdown-timeout). The master waits for this node that much longer before it gives
  # the node up. 0: a node that does not say so; the master's default counts.

  command @11 :Command;
  # What this node runs. A job runs one command: a master refuses a node that runs another one.

  struct Command {
    text @0 :Text;
    # For people, shortened: "train.py --lr 0.1". Empty: the node does not say what it runs, and the master does not compare.

    script @1 :UInt64;
    # A digest of the script's (module's, program's) own name, without its directory.

    arguments @2 :UInt64;
    # A digest of the script's arguments, or 0 if they may differ between the nodes of the job: where the job was named (--rdzv-id) or
    # this node has a rank of its own (--node-rank), it was started for this job and no other.
  }

  workerRole @12 :Text;
  # What this node's workers do (--role). Nodes of one job may have different roles; workers are counted per role as well.

  revision @13 :UInt16;
  # What the node understands beyond the major version of the envelope (messages/msg.hpp). The master refuses a node of a revision that
  # does not understand what this master sends. 0: a node that does not say it.

  bulkPort @14 :UInt16;
  # Where other nodes dial this one's bulk links, at `address`. 0: nowhere.

  purpose @15 :Purpose;
  # Of a peer's link: what it carries.

  switches @16 :List(Text);
  # The switches above this node, from the top of the network down (--switches). Empty: the node does not know them.

  rankIsFound @17 :Bool;
  # wantedRank was found in the variables of a scheduler, which numbers its nodes in some order; not in the user's own words. Where
  # ranks follow the network the node may get another one.

  maxRestarts @18 :UInt32;
  # How many failures of its workers this node was told to bear (--max-restarts). It counts where the master was told nothing of it.

  jobOptions @19 :List(JobOption);
  # The options of the job that this node was told. The first node's count, where the master was not told them itself; a node that
  # contradicts them is refused. At most limits::job_options_max, of limits::job_option_content_max bytes in all.

  changesJob @20 :Bool;
  # Of a shell: it is here to change the job (ScaleRequest), and not only to look at it. A certificate must allow that.

  machine @21 :List(Text);
  # Other names of the machine that this node is on, as its pod was told them: by these a file that tells of the network may know it. At most
  # limits::machine_names_max.

  enum Role {
    node @0;
    shell @1;
    peer @2;
    # Another node of the job, on a bulk link; a master refuses it.
  }

  enum Purpose {
    copies @0;
    # copies.capnp
    probe @1;
    # network_check.capnp
    neighbours @2;
    # neighbours.capnp
  }
}

struct JobOption {
  name @0 :Text;
  # Its long name, as "--network-check".

  value @1 :Text;
  # As it was typed.

  flag @3 :Bool;
  # It takes no value.

  nodesAct @4 :Bool;
  # Not the master alone acts on it, but each node that was told it as well.

  content @2 :Data;
  # The file that `value` names, where the node could read it: the master's machine may not have it.
}

struct NodeState {
  # What a node supervisor is doing about training, in full.
  generation @0 :UInt64;
  phase @1 :Phase;
  storePort @2 :UInt16;
  # As in Prepared; only in phases prepared and running of group rank 0.

  failures @3 :List(WorkerFailure);
  # Those of `generation`, oldest first; only in phase failed.

  storeHosted @4 :Bool;
  # As in Prepared.

  asked @5 :Bool;
  # As in Finished; only in phase finished.

  enum Phase {
    idle @0;
    # No training process.
    draining @1;
    # Ending an older generation's processes.
    prepared @2;
    # Ready to start `generation`.
    running @3;
    failed @4;
    # A worker of `generation` failed; the others were stopped.
    finished @5;
    # All local workers of `generation` exited with 0.
  }
}

struct WorkerFailure {
  node @0 :Text;
  localRank @1 :UInt32;
  rank @2 :UInt32;
  pid @3 :Int32;

  exitCode @4 :Int32;
  # As torchrun prints it: the exit status, or minus the signal's number.

  message @5 :Text;
  # One line: what it was, or the first line of the worker's error file.

  unixTimeMs @6 :Int64;
  # The node's wall clock when it failed (what its error file says, else when the process ended), for people only; never compared
  # between nodes.

  beforeStart @7 :Bool;
  # The process could not be started at all; `message` says why. `pid` is 0.

  logFile @8 :Text;
  # The worker's error file on its node, empty if it wrote none.

  traceback @9 :Text;
  # What its error file tells in full, shortened at the front; many lines. Empty if there is nothing beyond `message`.

  host @10 :Text;
  # What the node's machine calls itself.

  agoUs @11 :UInt64;
  # From the node: how long before this message was written the failure showed first, in microseconds; when its error file was
  # written, or when the process ended. So the master can put failures of several nodes in order without comparing their clocks.

  outOfMemory @12 :Bool;
  # From the node: the kernel has killed processes for lack of memory since the worker was started.

  exitClass @13 :ExitClass;
  # From the master: what kind of end it takes it for.

  logTail @14 :Text;
  # From the node: the last lines that the worker wrote to stderr, where that goes to a file. Only the first few failures of a
  # generation have it (limits::log_tails_max); from the master: only the root cause.

  matchedLine @15 :Text;
  # From the master: the line of the traceback or of `logTail` by which the class was known, if it was by one.

  stopped @16 :Bool;
  # From the node: the failure had shown before, in an error file, but what ended the process was the node's own signal. Such a
  # failure is never the root cause while another process has failed by itself.

  hung @17 :Bool;
  # From the node: its process was ended because it kept the other ranks waiting; `message` says how.

  enum ExitClass {
    unknown @0;
    # Not judged yet.
    software @1;
    hardware @2;
    outOfMemory @3;
    killed @4;
    preempted @5;
    hung @6;
    network @7;
    # An older build takes it for the program's own.
  }
}

struct Welcome {
  job @0 :Text;
  beatEveryMs @1 :UInt32;

  options @2 :List(Text);
  # One line each: an option of the job of which this node was told something else than the master, and what that means.
}

struct Refused {
  reason @0 :Text;
  # One line for the person who started the node.
  retry @1 :Bool;
  # The node may join anew, as a new incarnation, once its processes are gone.
  retryAfterMs @2 :UInt32;
  # With `retry`: the master refuses until so much time has passed. For nodes that are lost again and again.

  job @3 :Text;
  # The job that the refusing master serves. A node that has followed its own job's master does not obey the refusal of another job's.
}

struct Goodbye {
  # The sender ends this link on purpose and will not come back; from a node it means "lost, without a grace period".
  reason @0 :Text;
}

# ---- Inside the node supervisor ----

struct StateRequest {
  # uplink → agent, before it says hello; answered with NodeState.
}

struct Identity {
  # uplink → its successor: as whom this node says hello.
  incarnation @0 :UInt64;

  follows @1 :UInt64;
  # The term of the newest master it has followed: no older one is obeyed.

  heard @2 :Rendezvous.Dispensable;
  # What that master said last of the world that runs, for a node that is cut off. Absent: nothing, or it counts no more.
}

# ---- Inside the master ----

struct NodePresent {
  # A node has a link: it joined, or it is back after it was away. Repeated on every new link.
  node @0 :Text;
  incarnation @1 :UInt64;
  address @2 :Text;
  slots @3 :UInt32;
  wantedRank @4 :Int32;
  state @5 :NodeState;

  stopWithinMs @6 :UInt64;
  workerRole @7 :Text;
  bulkPort @8 :UInt16;
  switches @9 :List(Text);
  rankIsFound @10 :Bool;
  maxRestarts @11 :UInt32;
  machine @12 :List(Text);
  # As in Hello.
}

struct NodeAway {
  # The connection to a node was closed; it may come back, but not for long. A node that was silent is lost without having been away.
  node @0 :Text;
  reason @1 :Text;
}

struct NodeLost {
  node @0 :Text;
  reason @1 :Text;
}

struct NodeReplaced {
  # membership → member: another node has taken the name of this one, which is lost but may still run workers. NodeLost follows when
  # it does not any more.
  node @0 :Text;
  reason @1 :Text;
}

struct LinkLost {
  # session → membership: the link of a node is gone.
  session @0 :UInt64;
  # The session's number; it is used for one link.
  how @1 :How;
  reason @2 :Text;

  enum How {
    closed @0;
    # The connection was closed or has broken.
    silent @1;
    # Nothing was heard for as long as the lease allows.
    isolated @2;
    # The same of all peers of this listener at once: this process may be the one that is cut off.
    pausedHere @3;
    # Closed while this process was stopped or starved: the node may rest before it dials again.
  }
}

struct NodeDeparted {
  # session → membership: the node has said Goodbye.
  session @0 :UInt64;
  reason @1 :Text;
}

struct Evict {
  # planner, rendezvous, member → membership: the node takes no part any more; NodeLost is the answer.
  node @0 :Text;
  reason @1 :Text;
  mayRejoin @2 :Bool;
  # A new incarnation of it is welcome.
  inShort @3 :Text;
  # The reason in a few words, for lines of a log that has the whole of it already. Empty: it has not.
}

struct JobOver {
  # planner → membership: a node that leaves from now on does what it should.
}

struct ListNodes {
  # gateway → membership: which nodes have a session, for a report to a person.
}

struct EndLink {
  # membership → session: close the link; the reason is for the log.
  reason @0 :Text;
}

struct StateRenewed {
  # agent → uplink: the agent has lost its state; the next hello says the new one.
}

struct Abandon {
  # The owner of the master → planner: the job ends, as failed. uplink → agent: no master can be reached, so this node ends its part.
  reason @0 :Text;
}
