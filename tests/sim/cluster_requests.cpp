#include "runtime/sup/shell.hpp"
#include "tests/sim/cluster_trees.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

#include <utility>

namespace troupe::sim {

namespace {

/// Its supervisor sees an abnormal end, as of an actor that threw.
template<class H>
void end_abruptly(const sup::address<H>& where) {
  if (const auto current = where.current())
    caf::anon_send_exit(current, caf::exit_reason::kill);
}

} // namespace

void cluster::interrupt(const std::string& name, int signal) {
  if (!up(name) || masters_.count(name) != 0)
    return;
  world_.write(name, fmt::format("! signal {}", signal));
  nodes_.at(name).wishes_to_end.push_back(signal);
  hear(name, signal);
}

void cluster::hear(const std::string& name, int signal) {
  world_.tell(&observer::interrupted, name);
  if (const auto h = find(name))
    h->call([at = trees_->nodes.at(name), signal] {
      sup::post(at.agent, messages::local<messages::Interrupt>(
                              "launcher", [signal](auto b) { b.setSignal(signal); }));
    });
}

/// One question over a link of its own. It is the cluster's: what it holds ends with the cluster,
/// answered or not.
struct cluster::question {
  std::uint64_t number;
  messages::any_msg what;
  std::function<void(result<messages::any_msg>)> take;
  ports::connection_ptr link;
};

void cluster::ask_tree(std::function<void(result<messages::msg<messages::TreeReport>>)> take) {
  ask(messages::build<messages::TreeRequest>({"shell", {}, {}, 1, 1}, [](auto) {}).any(),
      4 * limits::request_within, [take = std::move(take)](result<messages::any_msg> answer) {
        if (answer)
          take(answer->as<messages::TreeReport>());
        else
          take(tl::make_unexpected(answer.error()));
      });
}

void cluster::scale(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  world_.write("shell", fmt::format("! scales to {}:{}", nodes_min, nodes_max));
  const auto wish = messages::build<messages::ScaleRequest>({"shell", {}, {}, 1, 1}, [&](auto b) {
    b.setNodesMin(nodes_min);
    b.setNodesMax(nodes_max);
  });
  ask(wish.any(), limits::scale_answer_within, [this](const result<messages::any_msg>& answer) {
    world_.write("shell", answer ? std::string("was told: ") +
                                       answer->as<messages::ScaleReport>().read()->getText().cStr()
                                 : "was told nothing: " + answer.error().what);
  });
}

void cluster::ask(messages::any_msg what, duration within,
                  std::function<void(result<messages::any_msg>)> take) {
  if (!shell_.process)
    boot("shell", shell_);
  const auto number = world_.next_question();
  const auto kind = "a " + messages::kind_name(what.kind());
  questions_[number] =
      std::make_shared<question>(question{number, std::move(what), std::move(take), {}});
  world_.tell(&observer::asked, number, "shell", kind, now() + limits::dial_within + within);
  shell_.process->call([this, number] {
    const auto hello = messages::build<messages::Hello>({"shell"}, [](auto b) {
      b.setJob("job");
      b.setNode("shell");
      b.setRole(messages::Hello::Role::SHELL);
      b.setChangesJob(true);
    });
    network_.transport_of(shell_.process)
        ->dial({master_name(), master_port}, hello,
               [this, number](result<ports::connection_ptr> link) {
                 ask_on(*questions_.at(number), std::move(link));
               });
  });
}

void cluster::ask_on(question& asked, result<ports::connection_ptr> link) {
  if (!link) {
    answer(asked, tl::make_unexpected(link.error()));
    questions_.erase(asked.number);
    return;
  }
  asked.link = *link;
  asked.link->open({[this, &asked](const messages::any_msg& m) {
                      if (m.envelope().correlation == 0)
                        return;
                      answer(asked, m);
                      asked.link->close("answered");
                    },
                    [this, &asked](ports::link_ending end) {
                      answer(asked, failure(errc::closed, std::move(end.reason)));
                      questions_.erase(asked.number);
                    }});
  (void)asked.link->send(asked.what);
}

void cluster::answer(question& asked, result<messages::any_msg> with) {
  if (!asked.take)
    return;
  world_.tell(&observer::answered, asked.number);
  std::exchange(asked.take, nullptr)(std::move(with));
}

void cluster::crash_actor(const std::string& host_name, const std::string& role) {
  const auto h = find(host_name);
  if (!h)
    return;
  world_.write(host_name, "! " + role + " crashes");
  if (const auto master = trees_->masters.find(host_name); master != trees_->masters.end())
    return h->call([m = master->second, role] {
      role == "journal"      ? end_abruptly(m.journal)
      : role == "membership" ? end_abruptly(m.membership)
      : role == "rendezvous" ? end_abruptly(m.rendezvous)
      : role == "job"        ? end_abruptly(m.job)
      : role == "recovery"   ? end_abruptly(m.recovery)
      : role == "catalog"    ? end_abruptly(m.catalog)
                             : end_abruptly(m.gateway);
    });
  h->call([n = trees_->nodes.at(host_name), role] {
    role == "agent"        ? end_abruptly(n.agent)
    : role == "persister"  ? end_abruptly(n.persister)
    : role == "replicator" ? end_abruptly(n.replicator)
                           : end_abruptly(n.uplink);
  });
}

} // namespace troupe::sim
