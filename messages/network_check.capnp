@0xe0d9b1a4c7635f28;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: network_check — before nodes may take part in a job, which node, link or machine is broken or slow?
#
# Roles     the master's *network_check* has nodes probed and decides; each node's *network_prober* probes what it is asked to, and the
#           master's *witness*, where no node is on its machine. Members of a group probe each other over bulk links of their own.
# Order     the planner asks with CheckWanted. NodeProbeWanted to each node → NodeProbed. Then in rounds GroupProbeWanted to each member of
#           each group → GroupProbed. When nothing more can be learnt, NodesChecked to the planner.
#           In a group each member dials the next one, and the last the first: ProbeBegin is the first frame of such a link after Hello, and
#           ProbeTaken answers each ProbePart. Where the devices of all members have one library for collectives, the ring only makes laps.
#           Then its first member's devices make a ProbeKey, which each member passes on and gives to its own, and each tells both
#           neighbours ProbePassed.
# Repeats   A wanted probe with the numbers of one that is under way is dropped; one with other numbers ends that one.
# Loss      Nothing is repeated: a node that has not answered in time is silent, which is a result like another. Of a link between members
#           the loss is the failure of the probe.
# Fence     `check` and `round`. Numbers of checks are never used twice, and answers to other ones are dropped. A link of a
#           group is closed whose ProbeBegin does not name the check, round and place that are expected at this member.

struct BoxCheck {
  # Pairs of devices, through the switch between them (--switchbox-check).
  pairs @0 :List(BoxPair);
  minBandwidth @1 :UInt64;
  # MB/s, 10^6 bytes (--min-bandwidth).
  minChannels @2 :UInt32;
  # --min-channels
}

struct BoxPair {
  first @0 :UInt32;
  second @1 :UInt32;
  # Devices by their index on the node.
}

struct NodeProbeWanted {
  # network_check → network_prober: how is this node by itself?
  check @0 :UInt64;
  withinMs @1 :UInt64;
  # What has not been found out by then counts as a failure.
  box @2 :BoxCheck;
  # Absent: switches between devices are not looked at.
  trained @3 :Bool;
  # Workers of this job have run there: memory of its devices that is in use may be theirs, and is no failure.
}

struct DeviceProbed {
  # One device of the node; a node without accelerators has one, its processors.
  index @0 :UInt32;
  name @1 :Text;
  # "NVIDIA H100 80GB HBM3"; "cpu".
  memoryBytes @2 :UInt64;
  memoryUsedBytes @3 :UInt64;
  # Before the probe; 0 for processors.
  computeUs @4 :UInt64;
  # Time of the matrix products of the probe. 0: not made.
  failed @5 :Text;
  # One line. Empty: the device works.
  gigaflops @6 :Float64;
}

struct PairProbed {
  first @0 :UInt32;
  second @1 :UInt32;
  bandwidth @2 :UInt64;
  # MB/s, of the worse direction.
  channels @3 :UInt32;
  failed @4 :Text;
  # One line, with the bound that was not kept. Empty: it works.
}

struct NodeProbed {
  # network_prober → network_check
  node @0 :Text;
  check @1 :UInt64;
  failed @2 :Text;
  # One line for people: what is broken here. Empty: the node works as far as it can tell by itself.
  seconds @3 :Float64;
  # Compute time of its slowest device; what nodes are compared by. 0: none was measured.
  devices @4 :List(DeviceProbed);
  pairs @5 :List(PairProbed);
  collectives @6 :Text;
  # The collective library that its devices have, with its version: "NCCL 2.27.3". Empty: none, groups use a ring of this job's own.
  ranks @7 :UInt32;
  # So many of its devices can take part in the probe of a group by that library. 0: none; an older build does not say.
}

struct GroupMember {
  node @0 :Text;
  address @1 :Text;
  port @2 :UInt16;
  # Where its bulk links are dialled: Hello.address and Hello.bulkPort. An empty address is the host at which the receiver has dialled its
  # master: the member is the master's own *witness*.
}

struct GroupProbeWanted {
  # network_check → the network_prober of each member
  check @0 :UInt64;
  round @1 :UInt32;
  group @2 :UInt32;
  # Of this round.
  members @3 :List(GroupMember);
  # In order of the ring. Of more than three only the one before the receiver, the receiver, and the one behind it.
  place @4 :UInt32;
  # Which of them the receiver is.
  sizes @5 :List(UInt64);
  # Bytes of a message, which all members reduce and gather, one size after the other.
  repeats @6 :UInt32;
  # So often for each size.
  withinMs @7 :UInt64;
  devices @8 :UInt32;
  # So many of the receiver's devices reduce and gather, by the collective library that all members have. 0: the members do, in their ring.
  firstRank @9 :UInt32;
  ranks @10 :UInt32;
  # Devices of the members before the receiver, and of all.
  paced @11 :Bool;
  # Others train: the members send no faster than copies of snapshots may (--copy-rate).
  count @12 :UInt32;
  # How many members there are, where only three are told. 0: all are.
}

struct SizeProbed {
  bytes @0 :UInt64;
  allReduceUs @1 :UInt64;
  allGatherUs @2 :UInt64;
  # Mean time of one, at this member.
}

struct GroupProbed {
  # network_prober → network_check
  node @0 :Text;
  check @1 :UInt64;
  round @2 :UInt32;
  group @3 :UInt32;
  failed @4 :Text;
  # One line for people. Empty: the probe has passed.
  seconds @5 :Float64;
  # From the moment at which all members were connected.
  latencyUs @6 :UInt64;
  # Of one way between neighbours: the median of the times once around, by the number of members.
  sizes @7 :List(SizeProbed);
  peer @8 :Text;
  # The member at the other end of the link that failed, if it was one.
}

# ---- Between the members of a group, on bulk links ----

struct ProbeBegin {
  check @0 :UInt64;
  round @1 :UInt32;
  group @2 :UInt32;
  place @3 :UInt32;
  # Of the sender: the receiver is the next one.
}

struct ProbePart {
  # What the sender gives to the next member, in order.
  step @0 :UInt32;
  # Counts the exchanges of this probe, from 0. A member that is told another one than it is at has lost its way, and fails.
  offset @1 :UInt64;
  content @2 :Data;
}

struct ProbeTaken {
  bytes @0 :UInt64;
}

struct ProbeKey {
  # By which the devices of all members find each other: from the first member on, to each next one.
  key @0 :Data;
}

struct ProbePassed {
  # To both neighbours: the sender's devices have reduced and gathered what they were to.
}

# ---- Between a node supervisor and its child, troupe-probe ----

struct DevicesProbeWanted {
  # network_prober → troupe-probe: answered with GroupProbed.
  group @0 :GroupProbeWanted;
  key @1 :Data;
  # Empty: it makes one, and says it in a ProbeKey before it does anything else.
}

# ---- Inside the master ----

struct CheckedNode {
  node @0 :Text;
  address @1 :Text;
  bulkPort @2 :UInt16;
  trained @3 :Bool;
  # As in NodeProbeWanted.
}

struct CheckWanted {
  # recovery (the planner) → network_check
  nodes @0 :List(CheckedNode);
  # In order of rank.
  alone @1 :Bool;
  # Others train: only what these nodes can find out by themselves and among each other.
}

enum CheckFinding {
  faultyNode @0;
  faultyLink @1;
  slowNode @2;
  slowLink @3;
  undecidable @4;
}

struct Finding {
  kind @0 :CheckFinding;
  nodes @1 :List(Text);
  # The node; the two ends of the link; the candidates.
  reason @2 :Text;
  # One line for people.
}

struct NodesChecked {
  # network_check → recovery (the planner): the answer.
  findings @0 :List(Finding);
  leave @1 :List(Finding);
  # Nodes that are to leave the job, one in each, with the reason that the node's user reads.
  good @2 :List(Text);
  undecided @3 :List(Text);
  # Neither: which of these is broken could not be told.
}
