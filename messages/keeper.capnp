@0x9d27c4e81f60b3a5;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: keeper — the launcher's own process is the parent of all processes of a node; the node supervisor steers them through it.
#
# Roles     the *keeper* and its *supervisor*, which it forks; and the *store*'s process, which it forks on the supervisor's order.
# Order     The keeper begins: a ProcessPresent for each process that survived the last supervisor, then AllPresented. Each ProcessStarting
#           is followed by ProcessStarted or ProcessNotStarted, each SweepWanted by StraysSwept, each StoreWanted by StoreOpened or
#           StoreRefused on the socket that came with it. SupervisorFailed and SupervisorOver are a supervisor's last message.
# Framing   One message is one packet (SOCK_SEQPACKET) of at most limits::packet_max bytes, with at most one file descriptor.
# Repeats   There are none within a life: packets arrive once and in order. A successor is told everything anew.
# Loss      What one end had sent before it ended counts. What was sent to a supervisor that ended is lost; its starts, sweeps and orders are
#           void.
# Fence     None is needed: each supervisor has a channel of its own, and `process` is never used again below one keeper.
# Versions  There is one: the supervisor and the store are forked, not exec'd, so all are the same program's image.

# ---- From the supervisor ----

struct ProcessStarting {
  # A process is about to be cloned, below the keeper: until the answer to this no child that the keeper does not know is a stray.
}

struct ProcessStarted {
  # It runs. Its end is told with ProcessEnded.
  process @0 :UInt64;
  # The number that the supervisor gave it, by which both call it; unlike a pid it is never another's.
  pid @1 :Int32;
  label @2 :UInt64;
  # The supervisor's own, which a successor finds in ProcessPresent: the keeper does not read it.
}

struct ProcessNotStarted {
  # Nothing is left of the start but what has to be reaped.
}

struct ProcessAdopted {
  # A process of the last supervisor is this one's now: no sweep ends it. If it has ended, the sender is told so with ProcessEnded.
  process @0 :UInt64;
}

struct ProcessSignal {
  # For the whole group of a process. If the process has ended, the signal goes nowhere.
  process @0 :UInt64;
  signal @1 :Int32;
  alone @2 :Bool;
  # For the process alone.
}

struct SweepWanted {
  # Ends all that is below the keeper and that the sender has neither started nor adopted. Answered with StraysSwept. Where another one
  # is under way, the shorter times hold.
  quietUs @0 :UInt64;
  # So long it is left alone; then it is asked to end (SIGTERM).
  withinUs @1 :UInt64;
  # From now on until what is left is killed; 0: at once. Never less than quietUs.
}

struct StoreWanted {
  # With a socket, on which the store answers.
  process @0 :UInt64;
  # As in ProcessStarted: by this number the store is signalled, and its end is told.
  reach @1 :Reach;
  address @2 :Text;
  # As what the workers will dial this machine. At most limits::packet_text_max bytes.
  port @3 :UInt16;
  # 0: a free one.

  enum Reach {
    thisMachine @0;
    # Connections from elsewhere are closed unread.
    network @1;
    # Any client that can reach the port.
  }
}

struct Kept {
  # With a file, which replaces what the slot held. The keeper does not read it; the sender's successor finds it there.
  slot @0 :UInt8;
  # Below limits::kept_slots.
}

struct SupervisorFailed {
  # The sender ends now, and its successor may do better.
  why @0 :Text;
  # What keeps it from going on, in one line for the user. At most limits::packet_text_max bytes.
}

struct SupervisorOver {
  # The sender ends now, and no successor is wanted: the job is over on this node.
  exitCode @0 :Int32;
  # The launcher's.
}

# ---- From the keeper ----

struct ProcessPresent {
  # One that an earlier supervisor started, and whose end no supervisor has acted on.
  process @0 :UInt64;
  pid @1 :Int32;
  label @2 :UInt64;
  isStore @3 :Bool;
  # Forked by the keeper as StoreWanted says; else cloned by a supervisor.
}

struct AllPresented {
  # The receiver may begin: there are no more processes than those that were told.
  earlierLives @0 :UInt32;
  # How many supervisors came before the receiver.
}

struct ProcessEnded {
  # The process is reaped.
  process @0 :UInt64;
  signalled @1 :Bool;
  number @2 :Int32;
  # The signal that ended it, if one did (`signalled`); else its exit status.
}

struct StraysAwaited {
  # A sweep has found processes that need a while to end.
  processes @0 :Text;
  # Some of them by name, for people. At most limits::packet_text_max bytes.
  count @1 :UInt32;
  quietUs @2 :UInt64;
  # Until they are asked to end; 0: they have been.
  leftUs @3 :UInt64;
  # Until they are killed.
}

struct StraysSwept {
  killed @0 :UInt32;
  # How many of the processes that the workers had left behind had to be killed. What the kernel holds on to may still be there.
  ended @1 :UInt32;
  # How many more ended once they were asked to.
}

struct UserSignal {
  # The launcher received it. A wish to end is repeated to each successor.
  signal @0 :Int32;
}

# ---- From the store's process, or from the keeper if there is none ----

struct StoreOpened {
  port @0 :UInt16;
  # Where it listens; never 0.
}

struct StoreRefused {
  why @0 :Text;
  # In one line for the user. At most limits::packet_text_max bytes.
}

# ---- From a supervisor to its successor, in a file that the keeper does not read. Underway and Identity are handed over in the same way. ----

struct MasterPlace {
  # Where the master is: no other one may be made, and without a port option the nodes know the one that was picked.
  host @0 :Text;
  port @1 :UInt16;
  hostedHere @2 :Bool;
  # The sender hosts it, and its successor is to.
}

struct CopiesPlace {
  port @0 :UInt16;
  # Where other nodes dial the sender's bulk links: its workers and its master have told them.
}
