#include "actors/master/diagnosis/diagnosis.hpp"

#include "actors/limits.hpp"
#include "actors/master/addresses.hpp"
#include "actors/master/diagnosis/stacks_gather.hpp"
#include "diag/stacks/merged_message.hpp"
#include "runtime/sup/alarm.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

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

using stacks_request = msg<messages::StacksRequest>;
using stacks_report = msg<messages::StacksReport>;

/// Questions of one incarnation: nodes may still know those of the one before.
constexpr std::uint64_t questions_per_incarnation = 1'000'000'000;

/// A verdict of which the hook hears once its stacks are written.
struct untold_verdict {
  msg<messages::Diagnosed> what;
  std::optional<std::uint64_t> dump; ///< nothing: none is gathered for it
};
/// Numbers of diagnoses are those of a generation.
using verdict_number = std::pair<generation, std::uint64_t>;

verdict_number number_of(const msg<messages::Diagnosed>& m) {
  return {m.envelope().about, m.read()->getNumber()};
}

struct state {
  sup::context ctx;
  diagnosis_core core;
  messages::author author;
  stacks_gather gather;
  std::optional<std::uint64_t> writing; ///< the newest dump that is handed to the archive
  /// Shells that wait for a dump; bounded by limits::stacks_requests_max.
  std::multimap<std::uint64_t, sup::promise<stacks_report>> asking;
  options with;
  master_addresses master;
  std::optional<untold_verdict> untold;
  std::optional<verdict_number> told;
  sup::alarm alarm;
};

using private_handle = sup::widened<handle, written, sup::wake>;
using self_ptr = private_handle::stateful_pointer<std::optional<state>>;

void write_stacks(self_ptr self, const stacks_gather::gathered& g) {
  auto& s = *self->state;
  diag::stacks_to_write what{g.dump, g.of, {}};
  for (const auto& p : g.absent)
    what.absent.push_back(
        {fmt::format("node {} did not answer within {}", p.node, in_words(g.within)), p.first_rank,
         p.slots});
  s.writing = g.dump;
  s.with.stacks->write(std::move(what),
                       [me = private_handle{self}, dump = g.dump](diag::stacks_written done) {
                         sup::post(me, written{dump, std::move(done)});
                       });
}

// ---- the hook ----

/// Once for each hang: what corrects a verdict that was told is in the log.
void tell_hook(self_ptr self, const std::string& directory) {
  auto& s = *self->state;
  const auto found = std::exchange(s.untold, std::nullopt);
  if (!found || s.told == number_of(found->what))
    return;
  s.told = number_of(found->what);
  s.with.notify({found->what, directory});
}

void take_verdict(self_ptr self, const msg<messages::Diagnosed>& what) {
  auto& s = *self->state;
  // Of a rank that is slow there are no stacks.
  if (what.read()->getKind() == messages::HangKind::STRAGGLER)
    return s.with.notify({what, {}});
  const bool corrects = s.untold && number_of(s.untold->what) == number_of(what);
  if (s.untold && !corrects)
    tell_hook(self, {});
  s.untold = untold_verdict{what, corrects ? s.untold->dump : std::nullopt};
}

// ---- shells ----

stacks_report report_of(messages::author& author, const diag::stacks_written& w) {
  return author.write<messages::StacksReport>({}, [&w](messages::StacksReport::Builder b) {
    b.setDirectory(w.directory);
    b.setWhy(w.why);
    diag::write_merged(*w.shown, b.initStacks());
  });
}

stacks_report no_stacks(messages::author& author, std::string why) {
  diag::stacks_written none;
  none.why = std::move(why);
  return report_of(author, none);
}

void answer_shells(self_ptr self, std::uint64_t dump, const diag::stacks_written& w) {
  auto& s = *self->state;
  const auto [begin, end] = s.asking.equal_range(dump);
  if (begin == end)
    return;
  const auto report = report_of(s.author, w);
  for (auto one = begin; one != end; ++one)
    one->second.deliver(report);
  s.asking.erase(begin, end);
}

void tell_written(self_ptr self, std::uint64_t dump, const diag::stacks_written& what) {
  auto& s = *self->state;
  if (s.writing == dump)
    s.writing.reset();
  if (what.directory.empty())
    sup::tell_log(s.ctx, log::level::warning, "stacks_not_written",
                  fmt::format("the stacks of the ranks could not be written: {}", what.why));
  else
    sup::tell_log(s.ctx, log::level::notice, "stacks_written",
                  fmt::format("stacks of {} of {} ranks: {}/py_stack.svg and cpp_stack.svg",
                              what.ranks, what.world_size, what.directory),
                  {{"directory", what.directory}, {"ranks", std::int64_t{what.ranks}}});
  if (s.untold && s.untold->dump == dump)
    tell_hook(self, what.directory);
  answer_shells(self, dump, what);
}

// ---- effects ----

void begin_gathering(self_ptr self, const msg<messages::StacksWanted>& wanted) {
  auto& s = *self->state;
  const auto dump = wanted.read()->getDump();
  if (s.untold && !s.untold->dump)
    s.untold->dump = dump;
  // Shells that wait for the one whose place it takes go along.
  const auto before = s.gather.begin(sup::now(self), wanted, s.core.parts());
  if (!before)
    return;
  const auto [begin, end] = s.asking.equal_range(*before);
  std::vector<sup::promise<stacks_report>> along;
  for (auto one = begin; one != end; ++one)
    along.push_back(one->second);
  s.asking.erase(begin, end);
  for (auto& one : along)
    s.asking.emplace(dump, std::move(one));
}

struct performer {
  self_ptr self;

  void operator()(const diagnosis_core::say& e) const {
    if (e.message.is<messages::StacksWanted>())
      begin_gathering(self, e.message.as<messages::StacksWanted>());
    sup::send(self, self->state->master.membership, membership::dispatch{e.to, e.message});
  }
  void operator()(const diagnosis_core::notify& e) const {
    if (e.message.is<messages::Diagnosed>())
      take_verdict(self, e.message.as<messages::Diagnosed>());
  }
  /// The planner tells what follows.
  void operator()(const diagnosis_core::scale_back& e) const {
    const auto& s = *self->state;
    sup::post(s.master.recovery,
              messages::local<messages::ScaleRequest>(s.ctx.path(), [&e](auto b) {
                b.setNodesMax(e.nodes_max);
                b.setKeepsMin(true);
              }));
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
  // When hangs follow each other shortly there are no stacks to wait for.
  if (self->state->untold && !self->state->untold->dump)
    tell_hook(self, {});
  arm(self);
}

/// A second request joins the gathering that is under way, and so does one after a verdict.
sup::answer<stacks_report> take_request(self_ptr self) {
  auto& s = *self->state;
  if (s.asking.size() >= limits::stacks_requests_max)
    return no_stacks(s.author, fmt::format("{} requests for stacks wait already", s.asking.size()));
  auto dump = s.gather.dump();
  if (!dump)
    dump = s.writing;
  if (!dump) {
    perform(self, s.core.stacks_requested());
    dump = s.gather.dump();
  }
  if (!dump)
    return no_stacks(s.author, "no generation runs, so there are no processes to look at");
  auto promise = sup::promise_answer<stacks_report>(self);
  s.asking.emplace(*dump, promise);
  return promise;
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
  const diagnosis_core::free_numbers numbers{with.stacks->free_number(),
                                             ctx.incarnation() * questions_per_incarnation + 1};
  self->state.emplace(state{ctx,
                            diagnosis_core(author, policy, numbers),
                            author,
                            {},
                            {},
                            {},
                            std::move(with),
                            std::move(master),
                            {},
                            {},
                            {}});
  // Of a generation that runs already nothing else is heard: not after a restart of the master, nor
  // after a crash of this actor.
  sup::send(self, self->state->master.recovery,
            messages::local<messages::SealedRequest>(ctx.path()));
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
      [self](const stacks_request&) -> sup::answer<stacks_report> { return take_request(self); },
      [self](const written& w) { tell_written(self, w.dump, w.what); },
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
