@0xa8126e7b4fd05c93;

using Cxx = import "/capnp/c++.capnp";
using Stacks = import "stacks.capnp";
$Cxx.namespace("troupe::messages");

# Conversation: shell — a person looks at the running job, and says how large it may be.
#
# Roles     actor-shell *asks* (a link of role shell), the master's *gateway* answers. For a node's part of the tree the gateway
#           asks that node's uplink with the same message. Stacks are answered by the master's *diagnosis*, which asks all nodes
#           as after a verdict. How large the job is to be is the planner's (*recovery*) to decide.
# Order     One answer per question, joined by Envelope.correlation.
# Loss      Questions in flight fail when the link ends. A question changes nothing of the job, so it can be repeated; of stacks
#           a second one joins the first while that is being answered. Sizes that were said twice are the same sizes.

struct TreeRequest {
  node @0 :Text;
  # To the gateway: ask this node only. Empty: ask every node, up to the gateway's limit. An uplink ignores it.
}

struct TreeReport {
  roots @0 :List(TreeNode);
  # From an uplink: the node's supervisor. From the gateway: the master; the tree of each node is below the row of its session.
}

struct TreeNode {
  # One actor and what is below it.
  name @0 :Text;
  # The child's name at its supervisor. The gateway names the row of a node's session after the node.
  kind @1 :Text;
  # "worker", or the strategy of a supervisor; "unknown" for a part of the tree that could not be asked.
  phase @2 :Text;
  # What the actor is doing, in its own words; or why nothing is known ("did not answer within 1 s").
  uptimeMs @3 :UInt64;
  # Of the current incarnation.
  restarts @4 :UInt32;
  # How often the supervisor above has restarted this child.
  restartsLeft @5 :Int32 = -1;
  # Of a supervisor's own budget; -1 where there is none. Says less than `budgets`, which came later.
  children @6 :List(TreeNode);

  state @7 :Text;
  # "starting", "running", "stopping", "down"; "silent": it did not answer, `phase` says why; "ended" for a child that its
  # dynamic supervisor had until a while ago.
  mailbox @8 :UInt32;
  # Messages that wait to be handled.
  budgets @9 :List(BudgetUse);
  # Of a supervisor: in all, then under each name that restarts are counted against.
  lastEnd @10 :PastEnd;
  # Of the incarnation before this one, or of a child that has ended. Absent: there was none.
  unexpected @11 :UInt64;
  # Messages outside the actor's protocol; more than none is a bug.
}

struct BudgetUse {
  # How much of a supervisor's restart budget is used.
  of @0 :Text;
  # What the restarts are counted against, such as a node; empty: all, within the budget's period.
  used @1 :UInt32;
  allowed @2 :UInt32;
}

struct PastEnd {
  agoMs @0 :UInt64;
  bad @1 :Bool;
  # It did not end well, and was not asked to.
  why @2 :Text;
  # Why it ended so, or what it was asked to end for. May be empty.
}

struct StacksRequest {
  # To diagnosis: what are all ranks doing? It has their stacks gathered, merged and written as after a verdict, whether or not one
  # stands still.
}

struct StacksReport {
  directory @0 :Text;
  # On the machine of the master, with the files that actor-stacks writes. Empty: there is none, for the reason in `why`.
  why @1 :Text;
  stacks @2 :Stacks.MergedStacks;
  # What is in there, without the native stacks: those of Python, of which ranks there are any, and what is missing of others.
}

struct ScaleRequest {
  # To recovery: worlds of so many nodes from now on, in place of --nnodes. It is on record before it is answered, and a later master
  # goes by it.
  nodesMin @0 :UInt32;
  nodesMax @1 :UInt32;
  keepsMin @2 :Bool;
  # The fewest stay as they are, or are nodesMax if that is less; nodesMin means nothing.
  plan @3 :Text;
  # The identity of what asks, if that may ask again: done once, and on record. Empty: a person.
}

struct ScaleReport {
  accepted @0 :Bool;
  text @1 :Text;
  # What follows, or why it was refused; for people.
}
