#include "runtime/sup/testing/children.hpp"

#include "runtime/sup/shell.hpp"

#include <kj/debug.h>

#include <stdexcept>
#include <utility>

namespace troupe::sup::children {

namespace {

/// To itself: the time it takes to stop is over.
struct enough {};

} // namespace
} // namespace troupe::sup::children

TROUPE_LOCAL_MESSAGE(troupe::sup::children::enough)

namespace troupe::sup::children {

namespace {

/// The last part of its path.
std::string name_of(const context& ctx) {
  return ctx.path().substr(ctx.path().rfind('/') + 1);
}

/// Writes its end into the diary, however it comes.
struct state {
  ~state() { book.write(name + " ends"); }

  std::string name;
  diary book;
  unsigned pokes = 0;
  std::vector<promise<description>> unanswered;
};

using self_ptr = self_of<handle, state, enough>;

/// Where a child differs from a well-behaved one.
struct habits {
  std::function<void(self_ptr)> when_started;
  std::function<void(self_ptr)> when_poked;
  std::function<void(self_ptr, const stop_order&)> when_stopped;
  bool describes_itself = true;
};

behavior_of<handle, enough> behave(self_ptr self, const context& ctx, const diary& book,
                                   const habits& h) {
  self->state.name = name_of(ctx);
  self->state.book = book;
  harden(self, ctx,
         h.when_stopped ? std::function<void(const stop_order&)>(
                              [self, act = h.when_stopped](const stop_order& o) { act(self, o); })
                        : nullptr);
  book.write(self->state.name + " starts");
  if (h.when_started)
    h.when_started(self);
  return {
      [self, talks = h.describes_itself](describe) -> answer<description> {
        if (talks)
          return described(self, "poked " + std::to_string(self->state.pokes) + " times");
        return self->state.unanswered.emplace_back(promise_answer<description>(self));
      },
      [self, act = h.when_poked](poke) {
        ++self->state.pokes;
        if (act)
          act(self);
      },
      [](crash) { throw std::runtime_error("told to crash"); },
      [n = ctx.incarnation()](who) { return n; },
      [self](enough) { stop(self); },
  };
}

starter with(diary book, habits h) {
  return [book = std::move(book), h = std::move(h)](context& ctx) {
    return ctx.spawn<handle>(behave, ctx, book, h);
  };
}

} // namespace

void diary::write(const std::string& line) const {
  const std::lock_guard lock(pages_->mutex);
  pages_->lines.push_back(line);
}

std::string diary::read() const {
  const std::lock_guard lock(pages_->mutex);
  std::string out;
  for (const auto& line : pages_->lines)
    out += (out.empty() ? "" : ", ") + line;
  pages_->lines.clear();
  return out;
}

starter well_behaved(diary d) {
  return with(std::move(d), {});
}

starter crashes_on_start(diary d, unsigned from, unsigned to) {
  return [start = well_behaved(d), d, from, to](context& ctx) {
    if (ctx.incarnation() < from || ctx.incarnation() >= to)
      return start(ctx);
    d.write(name_of(ctx) + " cannot start");
    throw std::runtime_error("no port");
  };
}

starter restarts_forever(diary d) {
  habits h;
  h.when_started = [](self_ptr) { throw std::runtime_error("born to fail"); };
  return with(std::move(d), h);
}

starter crashes_on_nth_message(diary d, unsigned nth) {
  habits h;
  h.when_poked = [nth](self_ptr self) {
    if (self->state.pokes == nth)
      throw std::runtime_error("poked " + std::to_string(nth) + " times");
  };
  return with(std::move(d), h);
}

starter throws_kj_exception(diary d) {
  habits h;
  h.when_poked = [](self_ptr) { KJ_FAIL_REQUIRE("pointer out of bounds"); };
  return with(std::move(d), h);
}

starter exits_normally_when_poked(diary d) {
  habits h;
  h.when_poked = [](self_ptr self) { stop(self); };
  return with(std::move(d), h);
}

starter ignores_shutdown(diary d) {
  habits h;
  h.when_stopped = [](self_ptr self, const stop_order&) {
    self->state.book.write(self->state.name + " ignores it");
  };
  return with(std::move(d), h);
}

starter slow_to_stop(diary d, duration takes) {
  habits h;
  h.when_stopped = [takes](self_ptr self, const stop_order&) {
    self->state.book.write(self->state.name + " is stopping");
    later(self, takes, enough{});
  };
  return with(std::move(d), h);
}

starter fails_while_stopping(diary d) {
  habits h;
  h.when_stopped = [](self_ptr self, const stop_order&) {
    stop(self, error{errc::closed, "could not say goodbye"});
  };
  return with(std::move(d), h);
}

starter reads_its_orders(diary d, duration takes) {
  habits h;
  h.when_stopped = [takes](self_ptr self, const stop_order& o) {
    const char* causes[] = {"shutdown", "sibling", "asked"};
    self->state.book.write(self->state.name + " is told " + causes[static_cast<int>(o.because)] +
                           " '" + o.reason + "' " + std::to_string(o.detail));
    later(self, o.within.value_or(takes), enough{});
  };
  return with(std::move(d), h);
}

starter never_describes(diary d) {
  habits h;
  h.describes_itself = false;
  return with(std::move(d), h);
}

starter forgets_to_spawn() {
  return [](context&) { return handle{}; };
}

} // namespace troupe::sup::children
