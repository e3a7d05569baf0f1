@0xc5d8f2f4b1a06e31;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Every message of Troupe has an Envelope as its root: within a process, on a link, in the journal, and between a keeper and its supervisor.
#
# A reader that does not know `kind` must not guess: it answers nothing and counts the message. Within one major version schemas only
# grow (new fields, new kinds), so a newer master and older node supervisors understand each other.

struct Envelope {
  version @0 :UInt16;
  # Major version of the protocol. A peer with another one is refused at the handshake.

  sender @1 :Text;
  # The actor that built the message: "<node>/<place in the tree>", e.g. "node-3/training/agent".

  term @2 :UInt64;
  # Which master (see ids.hpp) the sender follows, or is. 0 when it follows none yet.

  generation @3 :UInt64;
  # The generation the message is about; 0 when it is not about training. The only fence: stale ones are dropped.

  sequence @4 :UInt64;
  # Counts the sender's messages, from 1. Gives traces and the journal an order; delivery is the link's business.

  correlation @5 :UInt64;
  # Joins an answer to its question across a link; 0 for all else. Chosen by the asking end.

  kind @6 :UInt64;
  # The 64-bit Cap'n Proto type id of the body's struct.

  body @7 :AnyPointer;
}
