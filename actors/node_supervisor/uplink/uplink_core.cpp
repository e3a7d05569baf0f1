#include "actors/node_supervisor/uplink/uplink_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

namespace {

const char* const agent_restarted = "the node's agent has restarted";
const char* const cut_off = "this node is cut off, and ends its workers";

} // namespace

/// An author that has followed a master belongs to an uplink that was restarted: the node is
/// welcome under its incarnation already, so a refusal of it is a fence.
uplink_core::uplink_core(uplink_options options, messages::author author, random_source random,
                         incarnation which, instant now, std::optional<bool> dispensable)
    : options_(std::move(options)), author_(std::move(author)), random_(random), which_(which),
      next_attempt_(now), trying_since_(now), idle_since_(now), unanswered_since_(now),
      redial_(options_.redial_first, options_.redial_max), welcomed_(author_.following() > term{}),
      dispensable_(dispensable) {}

uplink_core::effects uplink_core::tick(instant now) {
  effects out;
  if (phase_ == phase::resting && now >= next_attempt_) {
    // Anew for each attempt: what runs here may have changed since the last one.
    phase_.become(phase::asking);
    hello_is_stale_ = false;
    out.push_back(ask_state{});
  } else if (phase_ == phase::greeting && now >= welcome_until_) {
    // The link's beats go on where only the master's actors stand still, so silence does not end
    // this.
    redial(out, now, "the master did not answer the hello");
  }
  return out;
}

/// The hello is written in one piece out of one answer of the agent: what it leaves out has not
/// happened yet, and what happens from here on is kept in unsaid_ until the welcome.
uplink_core::effects uplink_core::state_known(instant now, const msg<NodeState>& state) {
  effects out;
  if (phase_ != phase::asking)
    return out;
  if (hello_is_stale_) {
    become_resting(out, now, cut_off);
    return out;
  }
  phase_.become(phase::dialling);
  // All that was reported so far is in the state.
  unsaid_.clear();
  auto known = state.read();
  last_generation_ = generation{known->getGeneration()};
  trains_ = known->getPhase() == NodeState::Phase::RUNNING;
  // Training needs no master: the time of an idle node counts from when it is one.
  if (trains_on())
    idle_since_ = now;
  out.push_back(dial{author_.write<Hello>(last_generation_, [&](Hello::Builder b) {
    b.setJob(options_.job);
    b.setNode(options_.node);
    b.setIncarnation(which_.value);
    b.setRole(Hello::Role::NODE);
    b.setAddress(options_.address);
    b.setBulkPort(options_.bulk_port);
    b.setSlots(options_.slots);
    b.setWantedRank(options_.wanted_rank ? static_cast<std::int32_t>(*options_.wanted_rank) : -1);
    b.setRankIsFound(options_.rank_is_found);
    if (!options_.role.empty())
      b.setWorkerRole(options_.role);
    b.setNodesMin(options_.nodes_min);
    b.setNodesMax(options_.nodes_max);
    b.setMaxRestarts(options_.max_restarts);
    b.setStopWithinMs(std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(milliseconds_of(options_.stop_within))));
    auto switches = b.initSwitches(static_cast<unsigned>(options_.switches.size()));
    for (unsigned n = 0; n < switches.size(); ++n)
      switches.set(n, options_.switches[n]);
    auto machine = b.initMachine(static_cast<unsigned>(options_.machine.size()));
    for (unsigned n = 0; n < machine.size(); ++n)
      machine.set(n, options_.machine[n]);
    b.setRevision(protocol_revision);
    auto command = b.initCommand();
    command.setText(options_.command.text);
    command.setScript(options_.command.script);
    command.setArguments(options_.command.arguments);
    if (!options_.of_job.empty())
      write_job_words(b.initJobOptions(static_cast<unsigned>(options_.of_job.size())),
                      options_.of_job);
    b.setState(*known);
  })});
  return out;
}

/// No hello without the state: the master would take it that nothing runs here and start the ranks
/// elsewhere, beside those that do.
uplink_core::effects uplink_core::state_unknown(instant now, const std::string& why) {
  effects out;
  if (phase_ == phase::asking)
    become_resting(out, now, "the node's agent does not answer (" + why + ")");
  return out;
}

uplink_core::effects uplink_core::dialled(instant now, const std::optional<error>& failure) {
  effects out;
  if (phase_ != phase::dialling)
    return out;
  if (!failure) {
    phase_.become(phase::greeting);
    welcome_until_ = now + limits::handshake_within;
    reached_since_lost_ = true;
    // It cannot be called back. A welcome to it would be for a state that is gone.
    if (hello_is_stale_)
      redial(out, now, trains_ ? agent_restarted : cut_off);
    return out;
  }
  const bool for_good = failure->code == errc::refused || failure->code == errc::invalid;
  if (for_good && !has_followed()) {
    become_over(out, failure->what);
    return out;
  }
  // Something answered at the address, so this node is not cut off: the master is away. Only where
  // nothing answers may the others have gone on without this node.
  master_absent_ = for_good || failure->code == errc::closed;
  if (master_absent_) {
    unanswered_since_ = now;
    reached_since_lost_ = true;
  }
  become_resting(out, now, failure->what);
  return out;
}

/// Before the welcome no directive counts: this incarnation is no member yet.
uplink_core::effects uplink_core::received(instant now, const any_msg& m) {
  effects out;
  const bool last_saves = phase_ == phase::over && (m.is<CommitStep>() || m.is<StepFinalized>());
  if (phase_ != phase::greeting && phase_ != phase::linked && !last_saves)
    return out;
  if (m.envelope().follows < author_.following()) {
    // On a link that is in use it is a message that was on its way, and only that is dropped.
    if (phase_ == phase::greeting)
      leave_older_master(out, now, m.envelope().follows);
    return out;
  }
  if (m.is<Refused>()) {
    refused(out, now, m.as<Refused>());
  } else if (m.is<Welcome>()) {
    if (phase_ == phase::greeting)
      welcomed(out, m.as<Welcome>());
  } else if (phase_ == phase::linked && m.is<Dispensable>()) {
    dispensable_ = m.as<Dispensable>().read()->getOthersSuffice();
  } else if (phase_ == phase::linked) {
    if (m.is<Prepare>())
      // That was about the last world; the master says it again of the new one.
      dispensable_.reset();
    out.push_back(deliver{m});
    // A start_over has to name the newest generation there is: the agent may be about to begin it.
    last_generation_ = std::max(last_generation_, m.envelope().about);
    if (m.is<Conclude>()) {
      verdict_ = m;
      phase_.become(phase::over); // no master is to be dialled again
    }
  } else if (last_saves) {
    out.push_back(deliver{m});
  }
  return out;
}

/// An older master may be one that was cut off and does not know it. Neither its welcome nor its
/// refusal says anything about this node, whose training stays untouched.
void uplink_core::leave_older_master(effects& out, instant now, term master) {
  redial(out, now,
         fmt::format("the master there (term {}) is older than the one this node has followed "
                     "(term {})",
                     master.value, author_.following().value));
}

void uplink_core::welcomed(effects& out, const msg<Welcome>& m) {
  // Every later message and hello carries this term: an older master is refused from here on, by
  // this node's next uplink as well.
  author_.follow(m.envelope().follows);
  phase_.become(phase::linked);
  redial_.reset();
  last_error_.clear();
  waiting_.end();
  out.push_back(note{{was_linked_ ? log::level::notice : log::level::info,
                      was_linked_ ? "link_restored" : "link_established",
                      fmt::format("{} the master at {}",
                                  was_linked_ ? "linked again to" : "linked to", options_.master),
                      {{"master", options_.master}}}});
  // Once: the master says it again at each welcome.
  auto welcome = m.read();
  if (!was_linked_)
    for (const auto line : welcome->getOptions())
      out.push_back(note{{log::level::warning, "job_option_differs", line.cStr(), {}}});
  was_linked_ = welcomed_ = true;
  dispensable_.reset();
  // What happened since the hello goes out before `linked`, at which other actors repeat all that
  // they know.
  TROUPE_RARE_IF(!unsaid_.empty(), "uplink: something has happened since the hello");
  bool leaves = false;
  for (const auto& report : std::exchange(unsaid_, {})) {
    leaves = leaves || report.is<Goodbye>();
    out.push_back(say{report});
  }
  out.push_back(linked{});
  if (leaves)
    become_gone();
}

/// A node that has said Goodbye does not dial again: the master closes its link, and one that comes
/// back is a new node, for which a master that ends the job waits.
void uplink_core::become_gone() {
  if (phase_ == phase::over)
    return;
  phase_.become(phase::over);
  gave_up_because_ = "this node has left the job";
}

uplink_core::effects uplink_core::report(const any_msg& m) {
  effects out;
  const bool leaves = m.is<Goodbye>();
  if (phase_ == phase::linked || phase_ == phase::over) {
    out.push_back(say{m});
    if (leaves)
      become_gone();
  } else if (phase_ == phase::dialling || phase_ == phase::greeting) {
    // So the bound is the number of kinds, however long the dial takes.
    const auto same_kind = [&m](const any_msg& other) { return other.kind() == m.kind(); };
    unsaid_.erase(std::remove_if(unsaid_.begin(), unsaid_.end(), same_kind), unsaid_.end());
    unsaid_.push_back(m);
  } else if (leaves) {
    become_gone();
  }
  return out;
}

void uplink_core::refused(effects& out, instant now, const msg<Refused>& m) {
  auto refusal = m.read();
  const std::string reason = refusal->getReason().cStr();
  const std::string job = refusal->getJob().cStr();
  // Ports are used again: after a crash of the master another job's may listen there. It has no say
  // about training of this one.
  if (has_followed() && !job.empty() && job != options_.job) {
    master_absent_ = true;
    unanswered_since_ = now;
    return redial(out, now, fmt::format("the master there serves another job ('{}')", job));
  }
  if (!refusal->getRetry())
    return become_over(
        out, fmt::format("the master at {} refused this node: {}", options_.master, reason),
        has_followed());
  // The refused incarnation is fenced for good: the node can come back only as another one, with
  // nothing running. The order to end the workers goes out before the link does.
  which_ = incarnation{random_.next()};
  out.push_back(
      start_over{author_.write<Stop>(last_generation_, [&](auto b) { b.setReason(reason); })});
  out.push_back(close_link{"joining anew"});
  // No master can make a node wait for ever.
  const auto wait = std::min<duration>(std::chrono::milliseconds(refusal->getRetryAfterMs()),
                                       limits::rejoin_after_max);
  // Given up is what was welcome once. A new incarnation that is refused is only not taken yet, and
  // its refusals do not give it more time.
  const bool fenced = std::exchange(welcomed_, false) && wait == duration::zero();
  out.push_back(note{{log::level::warning,
                      fenced ? "fenced" : "not_taken_yet",
                      fmt::format(fenced ? "the master gave this node up ({}): what still runs "
                                           "here is ended and the node joins anew"
                                         : "the master does not take this node yet: {}",
                                  reason),
                      {{"master", options_.master}, {"reason", reason}}}});
  // A master that answers is not away: a node that it gave up, or told to wait, has all its time
  // again. A fence is said once to an incarnation that was welcome, so this comes to an end.
  trains_ = false;
  TROUPE_RARE_IF(fenced, "uplink: the master has given this node up");
  if (fenced || wait > duration::zero())
    lost_link(now);
  if (now >= gives_up_at())
    return become_resting(out, now, reason);
  // The master was heard, so the next outage is told from its beginning.
  waiting_.end();
  last_error_.clear();
  rest(now, wait);
}

/// Only the loss of a welcomed link begins the wait anew. Otherwise a peer that accepts and closes,
/// again and again, would be waited for without end.
uplink_core::effects uplink_core::closed(instant now, const std::string& reason) {
  effects out;
  if (phase_ != phase::greeting && phase_ != phase::linked)
    return out;
  if (phase_ == phase::linked)
    lost_link(now);
  become_resting(out, now, reason);
  return out;
}

/// An agent that is restarted has lost its workers or its verdict; the one is the master's to hear,
/// in a new hello, the other is said again to the agent.
uplink_core::effects uplink_core::renew(instant now) {
  effects out;
  if (phase_ == phase::over && verdict_)
    out.push_back(deliver{verdict_});
  else if (phase_ == phase::over)
    out.push_back(give_up{gave_up_because_});
  else if (phase_ == phase::dialling)
    // The hello on its way carries the last agent's state; dialled() lets go of that link.
    hello_is_stale_ = true;
  else if (phase_ == phase::greeting || phase_ == phase::linked)
    redial(out, now, agent_restarted);
  return out;
}

void uplink_core::redial(effects& out, instant now, const std::string& why) {
  out.push_back(close_link{why});
  if (phase_ == phase::linked)
    lost_link(now);
  become_resting(out, now, why);
}

void uplink_core::rest(instant now, duration at_least) {
  phase_.become(phase::resting);
  // Half fixed, half random: a thousand nodes that lose their master together do not come back
  // together.
  const auto wait = redial_.next();
  next_attempt_ =
      now + at_least + wait / 2 +
      duration(static_cast<duration::rep>(random_.unit() * static_cast<double>(wait.count() / 2)));
}

/// The link of a node that has taken part is the master's to close: the master may wait for the
/// Goodbye that follows the end of the node's workers.
void uplink_core::become_over(effects& out, const std::string& reason, bool keep_link) {
  phase_.become(phase::over);
  gave_up_because_ = reason;
  if (!keep_link)
    out.push_back(close_link{reason});
  out.push_back(give_up{reason});
}

/// The other phases wait for an answer of the agent or the transport, each of which has a deadline.
std::optional<instant> uplink_core::next_wakeup() const {
  if (phase_ == phase::resting)
    return next_attempt_;
  if (phase_ == phase::greeting)
    return welcome_until_;
  return std::nullopt;
}

} // namespace troupe::actors
