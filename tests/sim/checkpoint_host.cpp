#include "tests/sim/checkpoint_host.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::sim {

// ---- A thread at a place ----

sim_place_thread::sim_place_thread(checkpoints& all, const host_ptr& launcher)
    : world_(all.all()), place_(all.place_of(launcher->name())), launcher_(launcher),
      writer_(std::make_unique<sim_storage>(world_, place_), launcher->name()) {}

void sim_place_thread::ask(work what) {
  now_.push_back({std::move(what), std::make_shared<place_use>(world_, place_)});
  go_on();
}

void sim_place_thread::ask_later(work what) {
  later_.push_back({std::move(what), std::make_shared<place_use>(world_, place_)});
  go_on();
}

/// The end of one piece of work begins the next, in an event of its own.
void sim_place_thread::go_on() {
  if (ended_ || (running_ && !running_->done()) || (now_.empty() && later_.empty()))
    return;
  auto& from = now_.empty() ? later_ : now_;
  auto next = std::move(from.front());
  from.pop_front();
  const auto timer = [at = launcher_](duration d, std::function<void()> what) {
    at->call_in(d, std::move(what));
  };
  running_ = fiber::start(timer, [this, next = std::move(next), timer] {
    fiber::current()->pass(10us);
    next.what(writer_);
    next.use->done();
    timer(0us, [this] { go_on(); });
  });
}

void sim_place_thread::end() {
  ended_ = true;
  now_.clear();
  later_.clear();
  if (running_)
    running_->end();
}

// ---- The host ----

sim_checkpoint_host::sim_checkpoint_host(checkpoints& of, host_ptr launcher)
    : all_(of), launcher_(std::move(launcher)), writes_(of, launcher_), commits_(of, launcher_) {}

void sim_checkpoint_host::watch(std::function<void(const ckpt::persist_request&)> on_request) {
  on_request_ = std::move(on_request);
  for (const auto& snapshot : all_.requests_of(node()))
    on_request_(snapshot);
}

void sim_checkpoint_host::write(const ckpt::persist_request& snapshot,
                                std::function<void(result<ports::receipt>)> done) {
  writes_.ask([this, snapshot, done = std::move(done)](ckpt::place_writer& to) {
    auto how = write_now(to, snapshot);
    all_.world_.write(node(), fmt::format("ckpt   step {} {} {}", snapshot.step, snapshot.to.file,
                                          how ? "is written" : "is not: " + how.error().what));
    done(std::move(how));
  });
}

result<ports::receipt> sim_checkpoint_host::write_now(ckpt::place_writer& to,
                                                      const ckpt::persist_request& snapshot) {
  auto words = all_.memory_of(node(), snapshot.local);
  if (words.word(snapshot.slot).sequence != snapshot.sequence || !words.hold(snapshot.slot))
    return failure(errc::invalid, "the snapshot is gone");
  const auto content = all_.content_of(words.snapshot(snapshot.slot));
  auto how = to.write(snapshot, ports::bytes_of(content), ports::never_stops);
  words.release(snapshot.slot);
  return how;
}

void sim_checkpoint_host::commit(const ckpt::commit_order& order,
                                 std::function<void(result<ckpt::completed>)> done) {
  commits_.ask([this, order, done = std::move(done)](ckpt::place_writer& to) {
    const auto how = to.commit(order);
    if (how)
      all_.world_.tell(&observer::step_completed, node(), order);
    all_.world_.write(node(),
                      fmt::format("ckpt   step {} as save {} {}", order.says.step, order.says.save,
                                  how ? "is complete" : "is not: " + how.error().what));
    done(how);
  });
}

void sim_checkpoint_host::retain(const ckpt::retain_order& order) {
  commits_.ask_later([order](ckpt::place_writer& to) { to.retain(order); });
}

void sim_checkpoint_host::finalize(const ckpt::persist_request& snapshot, const result<void>& how) {
  all_.finalize(node(), snapshot, how);
}

void sim_checkpoint_host::tell(const ckpt::persist_request& snapshot) {
  launcher_->call([me = shared_from_this(), snapshot] {
    if (me->on_request_)
      me->on_request_(snapshot);
  });
}

void sim_checkpoint_host::end() {
  on_request_ = nullptr;
  writes_.end();
  commits_.end();
}

} // namespace troupe::sim
