@0xa8126e7b4fd05c93;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: shell — a person looks at the living job.
#
# Roles     actor-shell *asks* (a link of role shell), the master's *gateway* answers; for a node's part of the tree the gateway asks
#           that node's uplink in turn.
# Order     One answer per question, joined by Envelope.correlation.
# Loss      Questions in flight fail when the link ends; asking has no effect, so asking again is free.

struct TreeRequest {}

struct TreeReport {
  roots @0 :List(TreeNode);
}

struct TreeNode {
  # One actor and what is below it.
  name @0 :Text;
  kind @1 :Text;
  # "worker", or the strategy of a supervisor.
  phase @2 :Text;
  # What it is doing, in its own words; or why nothing is known ("did not answer within 1 s").
  uptimeMs @3 :UInt64;
  restarts @4 :UInt32;
  restartsLeft @5 :Int32 = -1;
  # Of a supervisor's own budget; -1 where there is none.
  children @6 :List(TreeNode);
}
