#include "runtime/sup/supervisor.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/sup/child_event.hpp"
#include "runtime/sup/supervisor_shell.hpp"
#include "runtime/sup/tree_node.hpp"

#include <caf/exit_reason.hpp>
#include <caf/scheduled_actor.hpp>
#include <kj/exception.h>

#include <algorithm>
#include <exception>

namespace troupe::sup::detail {

namespace {

using supervisor_place = widened<dynamic_handle, stop_due, child_failing, child_up>;

child_options options_of(const node& n) {
  const bool leaf = n.is == node::kind::worker;
  return {n.id, n.when, leaf ? std::optional(n.limit.limit) : std::nullopt};
}

supervisor_core make_core(const node& n) {
  if (n.is == node::kind::dynamic)
    return supervisor_core(n.restarts);
  std::vector<child_options> children;
  for (const tree& t : n.children)
    children.push_back(options_of(t.root()));
  return {n.how, n.restarts, std::move(children)};
}

/// Starts an actor by its starter; whatever the starter throws is a failed start.
result<caf::actor> try_start(const starter& start, context ctx) {
  try {
    if (auto started = start(ctx))
      return started;
    return failure(errc::invalid, "its starter returned no actor");
  } catch (const kj::Exception& e) {
    return failure(errc::invalid, e.getDescription().cStr());
  } catch (const std::exception& e) {
    return failure(errc::invalid, e.what());
  }
}

} // namespace

supervisor_shell::supervisor_shell(supervisor_self self, tree spec, context ctx,
                                   std::function<void()> on_up)
    : self_(self), spec_(std::move(spec)), ctx_(std::move(ctx)), on_up_(std::move(on_up)),
      core_(make_core(spec_.root())), since_(now(self)) {
  for (const tree& child : spec_.root().children)
    slots_.emplace(last_key_ = last_key_.next(), slot{child});
}

/// Children that still live here belong to a supervisor that was killed or is itself wrong. No
/// supervisor watches them any more, so they end now.
supervisor_shell::~supervisor_shell() {
  for (auto& [key, s] : slots_) {
    if (!s.current)
      continue;
    if (s.spec.root().forget)
      s.spec.root().forget();
    caf::anon_send_exit(s.current, caf::exit_reason::kill);
  }
}

/// Effects may bring about further events (a start that fails); those come after the effects at
/// hand.
void supervisor_shell::happen(event_type e) {
  events_.push_back(std::move(e));
  if (std::exchange(deciding_, true))
    return;
  while (!events_.empty()) {
    const auto effects = core_.on(now(self_), events_.front());
    events_.pop_front();
    for (const auto& effect : effects)
      std::visit([this](const auto& it) { perform(it); }, effect);
  }
  deciding_ = false;
}

void supervisor_shell::perform(const effect::start& e) {
  slot& s = slots_.at(e.child);
  const node& n = s.spec.root();
  s.ctx.emplace(ctx_.system(), ctx_.path() + "/" + n.id, ctx_.log(), e.incarnation);
  s.since = now(self_);
  if (spec_.root().how == strategy::one_fate)
    s.ctx->when_it_fails(
        [me = supervisor_place{self_}, child = e.child, which = e.incarnation](std::string why) {
          post(me, child_failing{child, which, std::move(why)});
        });
  if (n.is == node::kind::worker) {
    auto started = try_start(n.start, *s.ctx);
    if (!started)
      return happen(event::start_failed{e.child, started.error().what});
    s.current = std::move(*started);
    happen(event::started{e.child});
  } else {
    s.current = start_supervisor(s, e.child);
  }
  living_.emplace(s.current.id(), e.child);
  self_->monitor(s.current);
}

caf::actor supervisor_shell::start_supervisor(const slot& s, child_key key) {
  // Our own handle within a child: a cycle, but only until the child is up or has ended.
  auto up = [me = supervisor_place{self_}, sign = child_up{key, s.ctx->incarnation()}] {
    post(me, sign);
  };
  const caf::actor started = spawn_supervisor(s.spec, *s.ctx, std::move(up));
  if (s.spec.root().bind)
    s.spec.root().bind(started);
  return started;
}

void supervisor_shell::obey(const stop_order& order) {
  asked_ = order.reason;
  happen(event::shutdown{order});
}

void supervisor_shell::perform(const effect::stop& e) {
  slots_.at(e.child).asked = e.order.reason;
  const auto& child = slots_.at(e.child).current;
  caf::anon_send(child, caf::exit_msg{child.address(), ordered(e.order)});
  if (e.limit)
    later(self_, *e.limit, stop_due{e.child, e.incarnation});
}

void supervisor_shell::perform(const effect::kill& e) {
  caf::anon_send_exit(slots_.at(e.child).current, caf::exit_reason::kill);
}

void supervisor_shell::perform(const effect::tell_end& e) {
  if (const auto& told = spec_.root().on_end)
    told({e.id, e.why});
}

void supervisor_shell::perform(const effect::forget& e) {
  if (const slot& s = slots_.at(e.child); s.ended_at) {
    past_.push_back({known_of(s), *s.ended_at});
    past_.back().report.state = "ended";
    if (past_.size() > limits::ended_shown_max) {
      // Many that ended well, such as the sessions of shells, displace none that did not.
      const auto well = std::find_if(past_.begin(), past_.end(), [](const past_child& p) {
        return !p.report.last_end || !p.report.last_end->why;
      });
      past_.erase(well == past_.end() ? past_.begin() : well);
    }
  }
  slots_.erase(e.child);
  refused_ = e.why;
  const auto [first, last] = removals_.equal_range(e.child);
  for (auto at = first; at != last; ++at)
    at->second.deliver(done{});
  removals_.erase(first, last);
}

void supervisor_shell::perform(const effect::announce&) {
  if (const auto up = std::exchange(on_up_, nullptr))
    up();
}

void supervisor_shell::perform(const effect::quit& e) {
  self_->quit(e.why ? fail(*e.why) : caf::make_error(caf::exit_reason::user_shutdown));
}

void supervisor_shell::perform(const effect::report& e) {
  if (ctx_.log())
    ctx_.log()(ctx_.path(), child_event(ctx_.path(), e));
}

void supervisor_shell::went_down(const caf::down_msg& m) {
  const auto found = living_.find(m.source.id());
  invariant(found != living_.end(), "DOWN of an actor that is no child of this supervisor");
  const child_key key = found->second;
  living_.erase(found);
  slot& s = slots_.at(key);
  s.current = nullptr;
  if (s.spec.root().forget)
    s.spec.root().forget();
  const bool normal = is_normal_end(m.reason);
  const std::string why = normal ? "as it should" : to_error(m.reason).what;
  s.ended_at = now(self_);
  s.ended_why = normal ? std::nullopt : std::optional(why);
  happen(event::down{key, normal, why});
}

/// Like child_up, this may arrive after that incarnation has ended.
void supervisor_shell::is_failing(const child_failing& m) {
  if (core_.children().count(m.child) != 0)
    happen(event::failing{m.child, m.incarnation, m.why});
}

/// May arrive after that incarnation has ended: its sender and its DOWN are not in order.
void supervisor_shell::came_up(const child_up& m) {
  const auto known = core_.children().find(m.child);
  if (known == core_.children().end())
    return;
  const auto& c = known->second;
  if (c.phase != child_phase::down && c.incarnation() == m.incarnation)
    happen(event::started{m.child});
}

answer<done> supervisor_shell::add(const start_child& m) {
  const tree& child = m.child;
  if (spec_.root().is != node::kind::dynamic)
    return fail(errc::invalid, ctx_.path() + " has a fixed list of children");
  if (const auto valid = validate_dynamic_child(child); !valid)
    return fail(valid.error());
  last_key_ = last_key_.next();
  slots_.emplace(last_key_, slot{child});
  refused_.reset();
  happen(event::add{last_key_, options_of(child.root()), m.against});
  if (refused_)
    return fail(*refused_);
  return done{};
}

answer<done> supervisor_shell::remove(const stop_child& m) {
  if (spec_.root().is != node::kind::dynamic)
    return fail(errc::invalid, ctx_.path() + " has a fixed list of children");
  const auto key = core_.find(m.id);
  if (!key)
    return fail(errc::refused, "there is no child called " + m.id);
  const auto once_down = promise_answer<done>(self_);
  removals_.emplace(*key, once_down);
  happen(event::remove{*key, m.order});
  return once_down;
}

void supervisor_shell::recall(const recall_restarts& m) {
  happen(event::recall{m.used});
}

node_report supervisor_shell::known_of(const slot& s) const {
  node_report known;
  known.name = s.spec.id();
  known.kind = kind_name(s.spec.root());
  if (s.ctx)
    known.restarts = s.ctx->incarnation();
  if (s.ctx)
    known.unexpected = s.ctx->unexpected();
  if (s.current)
    known.uptime = now(self_) - s.since;
  if (s.ended_at)
    known.last_end = past_end{now(self_) - *s.ended_at, s.ended_why, s.asked};
  return known;
}

described_child supervisor_shell::describe_child(child_key key, const slot& s) const {
  const auto& c = core_.children().at(key);
  auto known = known_of(s);
  known.state = to_string(c.phase);
  const bool stops = c.phase == child_phase::stopping;
  if (stops)
    known.phase = s.asked;
  return {std::move(known), stops || c.phase == child_phase::running ? s.current : nullptr,
          height(s.spec.root())};
}

answer<node_report> supervisor_shell::report() const {
  node_report own;
  own.name = spec_.id();
  own.kind = kind_name(spec_.root());
  own.state = phase();
  if (core_.phase() == supervisor_phase::stopping)
    own.phase = core_.why() ? core_.why()->what : asked_;
  own.uptime = now(self_) - since_;
  own.restarts = ctx_.incarnation();
  own.mailbox = self_->mailbox().size();
  own.unexpected = ctx_.unexpected();
  if (spec_.root().how != strategy::one_fate)
    own.budgets.push_back({{}, core_.restarts_used(now(self_)), core_.restarts_allowed()});
  for (const auto& [name, used] : core_.used_by_name())
    own.budgets.push_back({name, used, core_.restarts_allowed()});
  describe_past(own);
  std::vector<described_child> children;
  for (const auto& [key, s] : slots_)
    children.push_back(describe_child(key, s));
  return gather(self_, std::move(own), children);
}

void supervisor_shell::describe_past(node_report& own) const {
  for (const auto& p : past_) {
    const auto ago = now(self_) - p.ended_at;
    if (ago > limits::ended_shown_for)
      continue;
    own.children.push_back(p.report);
    own.children.back().last_end->ago = ago;
  }
}

namespace {

supervisor_behavior supervise(supervisor_self self, const tree& spec, const context& ctx,
                              const std::function<void()>& on_up) {
  auto* shell =
      (self->state.shell = std::make_shared<supervisor_shell>(self, spec, ctx, on_up)).get();
  harden(self, ctx, [shell](const stop_order& o) { shell->obey(o); });
  self->set_down_handler([shell](caf::down_msg& m) { shell->went_down(m); });
  shell->happen(event::begin{});
  return {
      [self, shell](describe) { return described(self, shell->phase()); },
      [shell](dump) { return shell->report(); },
      [shell](const start_child& m) { return shell->add(m); },
      [shell](const stop_child& m) { return shell->remove(m); },
      [shell](const recall_restarts& m) { shell->recall(m); },
      [shell](const stop_due& m) {
        shell->happen(event::stop_overdue{m.child, m.incarnation});
      },
      [shell](const child_failing& m) { shell->is_failing(m); },
      [shell](const child_up& m) { shell->came_up(m); },
  };
}

} // namespace

caf::actor spawn_supervisor(const tree& spec, const context& ctx,
                            const std::function<void()>& on_up) {
  return caf::actor_cast<caf::actor>(ctx.system().spawn(supervise, spec, ctx, on_up));
}

} // namespace troupe::sup::detail
