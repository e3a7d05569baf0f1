#include "runtime/base/limits.hpp"
#include "runtime/sup/supervisor_parts.hpp"

#include <caf/sec.hpp>
#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace troupe::sup::detail {

namespace {

/// A report while its children are being asked.
struct gathering {
  node_report report;
  promise<node_report> to;
  std::size_t open = 0;

  void one_done() {
    if (--open == 0)
      to.deliver(std::move(report));
  }
};

using gathering_ptr = std::shared_ptr<gathering>;

void ask_worker(supervisor_self self, const gathering_ptr& g, std::size_t at,
                const caf::actor& whom, duration within,
                const std::function<void(const caf::error&)>& on_silence) {
  self->request(whom, caf::duration{within}, describe{})
      .then(
          [g, at](const description& d) {
            g->report.children[at].phase = d.phase;
            g->report.children[at].mailbox = d.mailbox;
            g->one_done();
          },
          on_silence);
}

void ask_supervisor(supervisor_self self, const gathering_ptr& g, std::size_t at,
                    const caf::actor& whom, duration within,
                    const std::function<void(const caf::error&)>& on_silence) {
  self->request(whom, caf::duration{within}, dump{})
      .then(
          [g, at](const node_report& below) {
            auto& known = g->report.children[at];
            auto past = std::move(known.last_end);
            auto reason = std::move(known.phase);
            known = below;
            known.last_end = std::move(past);
            if (known.phase.empty())
              known.phase = std::move(reason);
            g->one_done();
          },
          on_silence);
}

} // namespace

promise<node_report> gather(supervisor_self self, node_report own,
                            const std::vector<described_child>& children) {
  auto g = std::make_shared<gathering>();
  g->report = std::move(own);
  g->to = promise_answer<node_report>(self);
  g->open = 1; // this function
  const auto to = g->to;
  for (const auto& child : children) {
    const std::size_t at = g->report.children.size();
    g->report.children.push_back(child.known);
    if (!child.ask)
      continue;
    ++g->open;
    // A supervisor further above a silent actor waits longer than that actor's own supervisor does.
    const duration within = limits::describe_within * (child.height + 1);
    const auto on_silence = [g, at, within](const caf::error& e) {
      // One that is on its way down need not answer.
      if (g->report.children[at].state == to_string(child_phase::stopping))
        return g->one_done();
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(within).count();
      g->report.children[at].state = "silent";
      g->report.children[at].phase = e == caf::sec::request_timeout
                                         ? fmt::format("did not answer within {} s", seconds)
                                         : to_error(e).what;
      g->one_done();
    };
    if (child.height == 0) {
      ask_worker(self, g, at, child.ask, within, on_silence);
    } else {
      ask_supervisor(self, g, at, child.ask, within, on_silence);
    }
  }
  g->one_done();
  return to;
}

} // namespace troupe::sup::detail
