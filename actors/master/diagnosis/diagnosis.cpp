#include "actors/master/diagnosis/diagnosis.hpp"

#include "actors/master/addresses.hpp"
#include "actors/master/diagnosis/stacks_gather.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace troupe::actors::diagnosis {

struct written {
  std::uint64_t dump = 0;
  diag::stacks_written what;
};

} // namespace troupe::actors::diagnosis

TROUPE_LOCAL_MESSAGE(troupe::actors::diagnosis::written)

namespace troupe::actors::diagnosis {

namespace {

using messages::msg;

struct state {
  sup::context ctx;
  diagnosis_core core;
  stacks_gather gather;
  options with;
  master_addresses master;
  /// The hook hears of it with its stacks.
  std::optional<msg<messages::Diagnosed>> untold;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, written, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void write_stacks(self_ptr self, const stacks_gather::gathered& g) {
  self->state->with.stacks->write(
      g.dump, g.of, [me = private_handle{self}, dump = g.dump](diag::stacks_written what) {
        sup::post(me, written{dump, std::move(what)});
      });
}

void tell_written(self_ptr self, const diag::stacks_written& what) {
  auto& s = *self->state;
  if (what.directory.empty())
    sup::tell_log(s.ctx, log::level::warning, "stacks_not_written",
                  fmt::format("the stacks of the ranks could not be written: {}", what.why));
  else
    sup::tell_log(s.ctx, log::level::notice, "stacks_written",
                  fmt::format("stacks of {} of {} ranks: {}/py_stack.svg and cpp_stack.svg",
                              what.ranks, what.world_size, what.directory),
                  {{"directory", what.directory}, {"ranks", std::int64_t{what.ranks}}});
  if (const auto found = std::exchange(s.untold, std::nullopt))
    s.with.notify({*found, what.directory});
}

struct performer {
  self_ptr self;

  void operator()(const diagnosis_core::say& e) const {
    auto& s = *self->state;
    if (e.message.is<messages::StacksWanted>())
      s.gather.begin(sup::now(self), e.message.as<messages::StacksWanted>(), e.to);
    sup::send(self, s.master.membership, membership::dispatch{e.to, e.message});
  }
  void operator()(const diagnosis_core::notify& e) const {
    auto& s = *self->state;
    if (!e.message.is<messages::Diagnosed>())
      return;
    const auto what = e.message.as<messages::Diagnosed>();
    // The stacks of a hang follow within a second or two; of a rank that is slow there are none.
    if (what.read()->getKind() == messages::HangKind::STRAGGLER)
      s.with.notify({what, {}});
    else
      s.untold = what;
  }
  void operator()(const diagnosis_core::note& e) const {
    sup::tell_log(self->state->ctx, e.event.severity, e.event.name, e.event.text, e.event.fields);
  }
};

void arm(self_ptr self) {
  auto& s = *self->state;
  auto next = s.core.next_wakeup();
  if (const auto other = s.gather.next_wakeup(); other && (!next || *other < *next))
    next = other;
  s.alarm.arm(self, next);
}

void perform(self_ptr self, const diagnosis_core::effects& effects) {
  for (const auto& e : effects)
    std::visit(performer{self}, e);
  arm(self);
}

void tick(self_ptr self) {
  auto& s = *self->state;
  if (const auto all = s.gather.tick(sup::now(self)))
    write_stacks(self, *all);
  perform(self, s.core.tick(sup::now(self)));
}

private_handle::behavior_type behave(self_ptr self, sup::context ctx, options with,
                                     master_addresses master) {
  sup::harden(self, ctx);
  const messages::author author(ctx.path(), master.commands_as);
  const auto policy = with.policy;
  self->state.emplace(state{ctx,
                            diagnosis_core(author, policy),
                            {},
                            std::move(with),
                            std::move(master),
                            std::nullopt,
                            {}});
  return {
      [self](sup::describe) { return sup::described(self, self->state->core.in_words()); },
      [self](const msg<messages::ProgressReport>& m) {
        perform(self, self->state->core.progress(sup::now(self), m));
      },
      [self](const msg<messages::MergedStacks>& m) {
        if (const auto all = self->state->gather.take(m))
          write_stacks(self, *all);
        arm(self);
      },
      [self](const msg<messages::Failed>& m) {
        perform(self, self->state->core.ended(sup::now(self), m.envelope().about));
      },
      [self](const msg<messages::Stopped>& m) {
        perform(self, self->state->core.ended(sup::now(self), m.envelope().about));
      },
      [self](const msg<messages::Sealed>& m) {
        perform(self, self->state->core.sealed(sup::now(self), m));
      },
      [self](const msg<messages::NodeLost>& m) {
        perform(self, self->state->core.node_lost(sup::now(self), m));
      },
      [self](const written& w) { tell_written(self, w.what); },
      [self](sup::wake w) {
        if (self->state->alarm.due(w))
          tick(self);
      },
  };
}

} // namespace

handle start(sup::context& ctx, const options& o, const master_addresses& master) {
  return ctx.spawn<handle>(behave, ctx, o, master);
}

} // namespace troupe::actors::diagnosis
