@0xa3198979f026a1fa;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: worker — a training process and the node supervisor that watches over it.
#
# Roles     the *process*, in a thread of libtroupe_worker.so that needs no lock of Python; and its *supervisor*, which listens.
# Order     The process dials and begins with WorkerHello. From then on either end says what it has to say when it has it: the process
#           FirstStep, once; the supervisor requests, each answered under its correlation. FatalSignal is a request of the process, and
#           GoOn its answer. Later kinds (a pause, shards of data, tuning) take the same form.
# Framing   One message is one packet (SOCK_SEQPACKET) of at most limits::worker_packet_max bytes, without descriptors.
# Repeats   A process dials again whenever its connection ends, as it does with each new supervisor, and says WorkerHello again. What has
#           happened once is in it (firstStepNs): FirstStep is not said again.
# Loss      What was sent before a connection ended counts. A request that is open then is void; its answer is not sent later.
# Fence     The supervisor knows the process by the kernel's word (SO_PEERCRED), not by WorkerHello. A hello of a generation that is not
#           the supervisor's own is from a process that is being ended: it is heard, and starts nothing.
# Trust     Each end of the socket is of the same user. The supervisor takes no value for granted: a process can say wrong things about
#           itself, and harms itself only.
# Versions  The library is the launcher's own, so both are of one build, but for a launcher that was replaced while it ran. An unknown
#           kind is dropped.

# ---- From the process ----

struct WorkerHello {
  rank @0 :UInt32;
  # As the launcher's environment had it, as all up to `generation`; what is no number there is 0 here.
  localRank @1 :UInt32;
  pid @2 :UInt32;
  # In the process's own namespace.
  generation @3 :UInt64;
  # That started it.
  version @4 :Text;
  # Of the library.
  feeds @5 :UInt64;
  # What reports to its page of progress: bits of diag::feed.
  python @6 :Text;
  torch @7 :Text;
  # Versions, as these say them; empty for what is not there.
  stacksSignal @8 :Int32;
  # A signal on which the process writes the Python frames of all its threads to the descriptor that it was given. 0: it does not, and the
  # signal would end it.
  firstStepNs @9 :UInt64;
  # When the process made its first step; CLOCK_MONOTONIC. 0: it has made none.
}

struct FirstStep {
  # The process has made its first step: training is under way again.
  atNs @0 :UInt64;
  # CLOCK_MONOTONIC.
  sinceFailureNs @1 :UInt64;
  # How long after the failure that led to this start of the workers that was. 0: none did.
}

struct FlightRecord {
  # Answers FlightRecordRequest, in as many messages as it takes, in order: they are one text of `bytes`.
  union {
    piece @0 :Data;
    # Of the JSON that PyTorch writes of its last collectives.
    why @1 :Text;
    # There is none: one line for people. This message is the only one then.
  }
  bytes @2 :UInt64;
  # Of the whole text, at most limits::flight_record_max; a longer one is cut there.
  at @3 :UInt64;
  # Where the piece begins. The answer is whole when a piece ends at `bytes`.
}

struct FatalSignal {
  # The process was hit by a signal that is about to end it. It waits for GoOn, for limits::fatal_signal_wait at most, so that its stacks
  # can be read. Written by a handler of that signal, into a frame that was made beforehand: plain numbers only.
  signal @0 :Int32;
  thread @1 :Int32;
  # The kernel's number of the thread that was hit, in the process's own namespace.
}

# ---- From the supervisor ----

struct FlightRecordRequest {
  # Asks for PyTorch's own record of the process's last collectives, its "flight recorder".
}

struct GoOn {
  # Answers FatalSignal, whether stacks were read or not: what the signal does without us is done now.
}
