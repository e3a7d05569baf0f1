@0x9c3f6be1d7a85204;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: copies — pieces of a snapshot in one node's memory are kept in others' (ckpt/erasure/stripes.hpp says which).
#
# Roles     the *source*, whose snapshot it is, dials each *target* of its group; a bulk link, which carries nothing else. The source says
#           Hello with role peer and purpose copies; no Welcome follows.
# Order     CopyBegin → CopyPiece … → CopyEnd, stripe by stripe in any order; then CopyHeld. CopyRefused may come at any time instead. The next
#           CopyBegin may follow on the same link.
# Pace      The target answers each CopyPiece with CopyTaken; the source has at most limits::copy_window bytes on the way, and sends no
#           faster than it was told to.
# Repeats   There are none: what fails is not tried again, the next step is. A source that begins the same step again breaks its stripes,
#           and so does one that begins another step while others wait for it: its ranks have started again.
# Loss      A source that goes between CopyBegin and CopyEnd breaks its stripes: they are dropped, and all that gave to them are refused.
# Names     The source's link belongs to one node. If that node does not run the rank of CopyBegin, the target closes the link. The target judges by
#           the newest RankOwners that it has heard; before the first one it refuses all.
# Fence     The same rule: a node that stood still while another took its place gives nothing, so its old step takes no memory from the pieces that
#           are held since. Which pieces are used all ranks decide when they load.

struct CopyKey {
  generation @0 :UInt64;
  step @1 :UInt64;
  worldSize @2 :UInt32;
  save @3 :UInt64;
  # Of the generation.
}

struct CopyBegin {
  key @0 :CopyKey;
  localRank @1 :UInt32;
  # The target keeps the pieces in memory of this local rank of its own.
  parity @2 :UInt32;
  ranks @3 :List(UInt32);
  # Global ranks of the group's members, in order.
  source @4 :UInt32;
  # Which of them; and the receiver:
  target @5 :UInt32;
  bytes @6 :UInt64;
  # Of the source's snapshot.
  whole @7 :CopyKey;
  # A step whose snapshots are all held, as ranks agreed: all but its pieces and this one's may be dropped. Not set: this source
  # knows of none, and the step that another source of this local rank named last is kept.
}

struct CopyPiece {
  # Of the piece for one stripe, a part.
  stripe @0 :UInt32;
  offset @1 :UInt64;
  content @2 :Data;
}

struct CopyTaken {
  bytes @0 :UInt64;
}

struct CopyEnd {
  crc32 @0 :UInt32;
  # Of the source's snapshot.
}

struct CopyHeld {
  # Every stripe that the source gave to here is whole: all others have given theirs, too.
}

struct CopyRefused {
  why @0 :Text;
  # One line for people.
}
