@0x8673cc7785131d48;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::messages");

# What the actors of actor-operator tell each other. It never leaves the process: other programs hear of the operator
# through the API server.
#
# Roles     *election* knows whether this operator leads, *informer* follows the objects of the API, one *job* for each ElasticJob acts.
# Order     LeadAsked (informer, when it begins) … Leading (once this operator leads) → the informer starts jobs → JobBegins (of each, also after
#           a crash) → JobObject, PodObject of all that is there, PodsTold, and from then on what changes.
# Repeats   All are idempotent: an object's newest state counts.
# Loss      An actor that begins anew asks again. An operator that leads no longer ends as a whole.

struct LeadAsked {
  # informer → election
}

struct Leading {
  # election → informer: from now on this operator acts.
}

struct JobBegins {
  # job → informer: tell me all there is.
  route @0 :Text;
}

struct JobObject {
  # informer → job: its ElasticJob, as the API server gave it.
  json @0 :Text;
}

struct PodObject {
  # informer → job: one of its pods; of the API's object those members that say what becomes of it.
  json @0 :Text;
}

struct PodGone {
  # informer → job
  uid @0 :Text;
}

struct PodsTold {
  # informer → job: all pods that are there have been told.
}
