#include "actors/operator/informer/informer.hpp"

#include "actors/limits.hpp"
#include "actors/operator/addresses.hpp"
#include "actors/operator/jobs/job/job.hpp"
#include "kube/informer_core.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <map>
#include <optional>
#include <utility>

namespace troupe::actors::informer {

struct answered {
  std::size_t of = 0;
  std::uint64_t number = 0;
  kube::api_answer answer;
};
struct line {
  std::size_t of = 0;
  std::uint64_t number = 0;
  std::string text;
};
struct closed {
  std::size_t of = 0;
  std::uint64_t number = 0;
  kube::api_answer answer;
};

} // namespace troupe::actors::informer

TROUPE_LOCAL_MESSAGE(troupe::actors::informer::answered)
TROUPE_LOCAL_MESSAGE(troupe::actors::informer::line)
TROUPE_LOCAL_MESSAGE(troupe::actors::informer::closed)

namespace troupe::actors::informer {

namespace {

struct state {
  sup::context ctx;
  kube::informer_core core;
  operator_options options;
  operator_world world;
  operator_addresses at;
  sup::alarm alarm;
  std::map<std::string, sup::address<operated_job::handle>> jobs;
  /// The watches that are open, by whose and which number: to cut them.
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> watches;

  state(sup::context c, const operator_options& o, operator_world w, operator_addresses a)
      : ctx(std::move(c)), core({o.name_space, o.seed}), options(o), world(std::move(w)),
        at(std::move(a)) {}
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    for (const auto& [number, id] : watches)
      world.api->cut(id);
  }
};

using private_handle = sup::widened<handle, answered, line, closed, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

struct performer {
  self_ptr self;

  void operator()(const kube::informer_core::call& e) const {
    self->state->world.api->call(
        e.what, [me = private_handle{self}, of = e.of, number = e.number](const auto& a) {
          sup::post(me, answered{of, number, a});
        });
  }
  void operator()(const kube::informer_core::open& e) const {
    self->state->watches[{e.of, e.number}] = self->state->world.api->watch(
        e.what,
        [me = private_handle{self}, of = e.of, number = e.number](std::string text) {
          sup::post(me, line{of, number, std::move(text)});
        },
        [me = private_handle{self}, of = e.of, number = e.number](const auto& a) {
          sup::post(me, closed{of, number, a});
        });
  }
  void operator()(const kube::informer_core::cut& e) const {
    const auto found = self->state->watches.find({e.of, e.number});
    if (found == self->state->watches.end())
      return;
    self->state->world.api->cut(found->second);
    self->state->watches.erase(found);
  }
  void operator()(const kube::informer_core::begin_job& e) const {
    auto& s = *self->state;
    const auto child = sup::worker(
        e.route, sup::restart::permanent, sup::stop_within{1s}, s.jobs[e.route],
        [route = e.route, o = s.options, world = s.world, at = s.at](sup::context& ctx) {
          return operated_job::start(ctx, route, o, world, at);
        });
    sup::request(
        self, s.at.jobs, limits::request_within, sup::start_child{child}, [](const sup::done&) {},
        [me = self, route = e.route](const error& why) {
          sup::tell_log(me->state->ctx, log::level::error, "job_not_started",
                        "no actor could be started for " + route + ": " + why.what,
                        {{"route", route}});
          // With the next start of this actor all is begun anew.
          sup::stop(me, why);
        });
  }
  void operator()(const kube::informer_core::end_job& e) const {
    self->state->jobs.erase(e.route);
    sup::request(
        self, self->state->at.jobs, limits::request_within, sup::stop_child{e.route},
        [](const sup::done&) {}, [](const error&) {});
  }
  void operator()(const kube::informer_core::tell_job& e) const {
    tell<messages::JobObject>(e.route, [&](auto b) { b.setJson(e.json); });
  }
  void operator()(const kube::informer_core::tell_pod& e) const {
    tell<messages::PodObject>(e.route, [&](auto b) { b.setJson(e.json); });
  }
  void operator()(const kube::informer_core::tell_gone& e) const {
    tell<messages::PodGone>(e.route, [&](auto b) { b.setUid(e.uid); });
  }
  void operator()(const kube::informer_core::tell_all_told& e) const {
    tell<messages::PodsTold>(e.route, [](auto) {});
  }
  void operator()(const kube::informer_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }

  template<class Kind, class Fill>
  void tell(const std::string& route, Fill fill) const {
    if (const auto found = self->state->jobs.find(route); found != self->state->jobs.end())
      sup::send(self, found->second, messages::local<Kind>(self->state->ctx.path(), fill));
  }
};

void perform(self_ptr self, const kube::informer_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  self->state->alarm.arm(self, self->state->core.next_wakeup());
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, operator_options o,
                                     operator_world world, operator_addresses at) {
  sup::harden(self, ctx);
  self->state.emplace(ctx, o, std::move(world), std::move(at));
  sup::send(self, self->state->at.election,
            messages::local<messages::LeadAsked>(ctx.path(), [](auto) {}));
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const messages::msg<messages::Leading>&) {
        perform(self, self->state->core.start(sup::now(self)));
      },
      [self](const messages::msg<messages::JobBegins>& m) {
        perform(self, self->state->core.job_begins(m.read()->getRoute()));
      },
      [self](const answered& m) {
        perform(self, self->state->core.answered(sup::now(self), m.of, m.number, m.answer));
      },
      [self](const line& m) {
        perform(self, self->state->core.line(sup::now(self), m.of, m.number, m.text));
      },
      [self](const closed& m) {
        self->state->watches.erase({m.of, m.number});
        perform(self, self->state->core.closed(sup::now(self), m.of, m.number, m.answer));
      },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          perform(self, self->state->core.tick(sup::now(self)));
      },
  };
}

} // namespace

handle start(sup::context& ctx, const operator_options& options, const operator_world& world,
             const operator_addresses& at) {
  return ctx.spawn<handle>(behave, ctx, options, world, at);
}

} // namespace troupe::actors::informer
