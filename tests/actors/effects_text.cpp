#include "messages/text.hpp"
#include "tests/actors/vocabulary.hpp"

#include <fmt/format.h>

namespace troupe::actors::testing {

using namespace messages;

namespace {

std::string slot_text(const worker_slot& s) {
  const auto& p = s.place;
  if (s.process)
    return fmt::format("adopt {} (pid {})", p.local, s.process->pid);
  return fmt::format("start {}: g{} rank {} of {}, node {} of {}, store {}:{}{}", p.local,
                     p.which.value, p.rank, p.world_size, p.group_rank, p.group_world_size,
                     p.store_address, p.store_port,
                     p.restart_count ? fmt::format(", restart {}", p.restart_count) : "");
}

std::string joined(const std::vector<node_name>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

const char* result_text(bool success) {
  return success ? "success" : "failure";
}

std::string snapshot_text(const ckpt::snapshot_here& snapshot) {
  return fmt::format("g{} step {} rank {}", snapshot.made_by.value, snapshot.step, snapshot.rank);
}

// ---- one effect each; empty for notes ----

struct in_text {
  // membership
  std::string operator()(const membership_core::welcome& e) const {
    return fmt::format("welcome {}", e.session.value);
  }
  std::string operator()(const membership_core::refuse& e) const {
    auto m = e.message.read();
    return fmt::format("refuse {}{}: {}", e.session.value, m->getRetry() ? " for now" : "",
                       m->getReason().cStr());
  }
  std::string operator()(const membership_core::fence& e) const {
    return fmt::format("fence {}: {}", e.session.value, e.reason);
  }
  std::string operator()(const membership_core::announce& e) const {
    return "announce " + text(e.message) + (e.may_run ? " (it may run)" : "");
  }
  std::string operator()(const membership_core::send_off& e) const {
    return fmt::format("send off {}: {}", e.session.value, e.message.read()->getReason().cStr());
  }
  std::string operator()(const membership_core::let_go& e) const {
    return fmt::format("let go of {}", e.message.read()->getNode().cStr());
  }
  std::string operator()(const membership_core::take_options& e) const {
    return fmt::format("take options of {}: {}", e.node, messages::in_words(e.words));
  }
  std::string operator()(const membership_core::everyone_left&) const { return "everyone left"; }
  std::string operator()(const membership_core::note&) const { return {}; }

  // rendezvous
  std::string operator()(const rendezvous_core::record& e) const {
    return "record " + text(e.message);
  }
  std::string operator()(const rendezvous_core::start& e) const {
    return "to all: " + text(e.message.any());
  }
  std::string operator()(const rendezvous_core::sealed& e) const {
    return "to planner: " + text(e.message.any());
  }
  std::string operator()(const rendezvous_core::evict& e) const {
    return fmt::format("evict {}: {}", e.node, e.reason);
  }
  std::string operator()(const rendezvous_core::note&) const { return {}; }
  std::string operator()(const rendezvous_core::done&) const { return "done"; }

  // member
  std::string operator()(const member_core::direct& e) const {
    return "to node: " + text(e.message);
  }
  std::string operator()(const member_core::tell_rendezvous& e) const {
    return "to rendezvous: " + text(e.message.any());
  }
  std::string operator()(const member_core::report& e) const {
    return "to planner: " + text(e.message);
  }
  std::string operator()(const member_core::fail_early& e) const { return "fails: " + e.why; }
  std::string operator()(const member_core::evict& e) const { return "evict: " + e.reason; }
  std::string operator()(const member_core::end& e) const {
    return e.why ? "ends: " + *e.why : "ends";
  }

  // recovery
  std::string operator()(const recovery_core::record& e) const {
    return "record " + text(e.message);
  }
  std::string operator()(const recovery_core::direct& e) const {
    return fmt::format("to {}: {}", joined(e.nodes), text(e.message));
  }
  std::string operator()(const recovery_core::start_generation& e) const {
    return fmt::format("begin {}{}{}", text(e.world.any()),
                       e.start ? ", which is sealed: " + text(e.start->any()) : "",
                       e.against ? ", counted against " + *e.against : "");
  }
  std::string operator()(const recovery_core::stop_generation& e) const {
    return fmt::format("stop g{}{}: {}", e.which.value,
                       e.verdict_follows ? ", its nodes hear the verdict" : "", e.reason);
  }
  std::string operator()(const recovery_core::recall_restarts& e) const {
    std::string all = "counted before:";
    for (const auto& [node, used] : e.used)
      all += fmt::format(" {} {}", node, used);
    return all;
  }
  std::string operator()(const recovery_core::evict& e) const {
    return fmt::format("evict {}{}: {}", e.node, e.may_rejoin ? " for now" : "", e.reason);
  }
  std::string operator()(const recovery_core::mark& e) const {
    return fmt::format("mark the machine of {} at {}: {}", e.node, e.address, e.reason);
  }
  // The stories tell of the job; what the cluster hears of it has a test of its own.
  std::string operator()(const recovery_core::lose&) const { return {}; }
  std::string operator()(const recovery_core::replace&) const { return {}; }
  std::string operator()(const recovery_core::reply& e) const {
    auto report = e.report.read();
    return fmt::format("answer {}: {}, {}", e.number,
                       report->getAccepted() ? "accepted" : "refused", report->getText().cStr());
  }
  std::string operator()(const recovery_core::check_nodes& e) const {
    auto asked = e.message.read();
    std::string all = asked->getAlone() ? "check alone" : "check";
    for (const auto n : asked->getNodes())
      all += fmt::format(" {}{}", n.getNode().cStr(), n.getTrained() ? "*" : "");
    return all;
  }
  std::string operator()(const recovery_core::announce_end&) const { return "announce the end"; }
  std::string operator()(const recovery_core::verdict& e) const {
    return fmt::format("verdict {}: {}", result_text(e.success), e.reason);
  }
  std::string operator()(const recovery_core::note&) const { return {}; }

  // uplink
  std::string operator()(const uplink_core::ask_state&) const { return "ask_state"; }
  std::string operator()(const uplink_core::dial& e) const { return "dial " + text(e.hello.any()); }
  std::string operator()(const uplink_core::close_link& e) const {
    return "close_link: " + e.reason;
  }
  std::string operator()(const uplink_core::say& e) const { return "say " + text(e.message); }
  std::string operator()(const uplink_core::deliver& e) const {
    return "deliver " + text(e.message);
  }
  // Follows every welcome; a test of its own asks for it.
  std::string operator()(const uplink_core::linked&) const { return {}; }
  std::string operator()(const uplink_core::start_over& e) const {
    return "start_over " + text(e.message.any());
  }
  std::string operator()(const uplink_core::give_up& e) const { return "give_up: " + e.reason; }
  std::string operator()(const uplink_core::note&) const { return {}; }

  // agent
  std::string operator()(const agent_core::start_generation& e) const {
    std::vector<std::string> all;
    for (const auto& slot : e.slots)
      all.push_back(slot_text(slot));
    return fmt::format("{}", fmt::join(all, "\n"));
  }
  std::string operator()(const agent_core::stop_generation& e) const {
    return fmt::format("stop g{}: signal {} within {}", e.which.value, e.signal,
                       troupe::in_words(e.within));
  }
  std::string operator()(const agent_core::signal_worker& e) const {
    return fmt::format("pass on {}: signal {}{}", e.local, e.signal, e.alone ? " alone" : "");
  }
  std::string operator()(const agent_core::look_for_handler& e) const {
    return fmt::format("look for handler of {}: signal {}", e.local, e.signal);
  }
  std::string operator()(const agent_core::sweep&) const { return "sweep"; }
  std::string operator()(const agent_core::open_store& e) const {
    return e.reach == ports::store_reach::network ? "open_store" : "open_store for this machine";
  }
  std::string operator()(const agent_core::adopt_store& e) const {
    return fmt::format("adopt_store at {}", e.port);
  }
  // Tests that care ask underway().
  std::string operator()(const agent_core::remember&) const { return {}; }
  std::string operator()(const agent_core::close_store&) const { return "close_store"; }
  std::string operator()(const agent_core::pick_port&) const { return "pick_port"; }
  std::string operator()(const agent_core::drain& e) const {
    return e.after > duration::zero()
               ? fmt::format("drain g{} after {}", e.which.value, troupe::in_words(e.after))
               : fmt::format("drain g{}", e.which.value);
  }
  std::string operator()(const agent_core::save_newest&) const { return "save_newest"; }
  std::string operator()(const agent_core::report& e) const { return "report " + text(e.message); }
  std::string operator()(const agent_core::node_over& e) const {
    return fmt::format("node_over {}{}: {}", result_text(e.outcome.success),
                       e.outcome.verdict ? " by verdict" : "", e.outcome.reason);
  }
  std::string operator()(const agent_core::watch&) const { return {}; }
  std::string operator()(const agent_core::note&) const { return {}; }

  // catalog
  std::string operator()(const catalog_core::say& e) const {
    return fmt::format("to {}: {}", joined(e.to), text(e.message));
  }
  std::string operator()(const catalog_core::note&) const { return {}; }

  // persister
  std::string operator()(const persister_core::write& e) const {
    return fmt::format("write {}", snapshot_text(e.snapshot));
  }
  std::string operator()(const persister_core::commit& e) const {
    const auto& says = e.order.says;
    return fmt::format("commit step {} in {}/{}: {} of {} ranks, {} files", says.step,
                       e.order.to.place, e.order.to.directory, says.layout, says.world_size,
                       says.shards.size());
  }
  std::string operator()(const persister_core::retain& e) const {
    const auto& now = e.order.now;
    const auto& keep = e.order.to.keep;
    if (!now.committed)
      return fmt::format("retain {} in {}, saves before {} of g{} have ended", keep.keep_latest,
                         e.order.to.place, now.open_from.number, now.open_from.made_by.value);
    const bool all_ended = *now.committed < now.open_from || *now.committed == now.open_from;
    return fmt::format("retain {} in {} behind save {} of g{}{}", keep.keep_latest,
                       e.order.to.place, now.committed->number, now.committed->made_by.value,
                       all_ended ? "" : fmt::format(", save {} is open", now.open_from.number));
  }
  std::string operator()(const persister_core::finalize& e) const {
    return fmt::format("finalize {}: {}", snapshot_text(e.snapshot),
                       e.how ? "complete" : e.how.error().what);
  }
  std::string operator()(const persister_core::look& e) const {
    return fmt::format("look {}", e.question);
  }
  std::string operator()(const persister_core::drained& e) const {
    return fmt::format("drained {}", e.question);
  }
  std::string operator()(const persister_core::report& e) const {
    return "report " + text(e.message);
  }
  std::string operator()(const persister_core::note&) const { return {}; }

  // replicator
  std::string operator()(const replicator_core::copy& e) const {
    return fmt::format("copy {} to {} others", snapshot_text(e.snapshot),
                       e.snapshot.by.members.size() - 1);
  }
  std::string operator()(const replicator_core::finalize& e) const {
    return fmt::format("finalize {}: {}", snapshot_text(e.snapshot),
                       e.how ? "held by others" : e.how.error().what);
  }
  std::string operator()(const replicator_core::note&) const { return {}; }

  // worker
  std::string operator()(const worker_core::signal& e) const {
    return fmt::format("signal {}{}", e.number, e.alone ? " alone" : "");
  }
  std::string operator()(const worker_core::tell_start& e) const {
    return "tell " + text(e.message.any());
  }
  std::string operator()(const worker_core::explain& e) const {
    return "explain " + ports::to_string(e.status);
  }
  std::string operator()(const worker_core::overdue& e) const { return "overdue: " + e.message; }
  std::string operator()(const worker_core::tell_end& e) const {
    return "tell " + text(e.message.any());
  }
  std::string operator()(const worker_core::quit& e) const {
    return e.why ? "end badly: " + *e.why : "end well";
  }
  std::string operator()(const worker_core::note&) const { return {}; }
};

template<class Effects>
std::string all_in_text(const Effects& effects) {
  std::vector<std::string> all;
  for (const auto& e : effects)
    if (auto line = std::visit(in_text{}, e); !line.empty())
      all.push_back(std::move(line));
  return fmt::format("{}", fmt::join(all, "\n"));
}

} // namespace

std::string text(const membership_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const rendezvous_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const member_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const recovery_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const uplink_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const agent_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const worker_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const catalog_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const persister_core::effects& effects) {
  return all_in_text(effects);
}
std::string text(const replicator_core::effects& effects) {
  return all_in_text(effects);
}

} // namespace troupe::actors::testing
