#include "tests/sim/channel.hpp"

#include "messages/limits.hpp"
#include "messages/text.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::sim {

namespace {

constexpr auto on_the_way = 1ms;
/// Before it dials again.
constexpr auto pause = 100ms;

std::string name_of(const process_record& p) {
  return fmt::format("worker/{}", p.rank);
}

std::uint64_t nanoseconds(instant at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

} // namespace

/// One node supervisor's end.
class channel::links final : public ports::worker_links,
                             public std::enable_shared_from_this<channel::links> {
 public:
  links(channel& of, host_ptr launcher) : of_(of), launcher_(std::move(launcher)) {}

  void listen(ports::worker_link_events events) override {
    events_ = std::move(events);
    for (const auto& [link, process] : std::exchange(open_, {}))
      lose(process);
  }
  void send(ports::worker_link to, const messages::any_msg& m) override {
    const auto found = open_.find(to);
    if (found == open_.end())
      return;
    const auto process = found->second;
    of_.world_.write(launcher_->name(),
                     fmt::format("> {} {}", name_of(of_.record(process)), messages::to_text(m)));
    of_.world_.events.in(on_the_way, [&of = of_, process, m] { of.hear(process, m); });
  }
  void close(ports::worker_link link) override {
    const auto found = open_.find(link);
    if (found == open_.end())
      return;
    lose(found->second);
    open_.erase(found);
    // Not from inside a call of this host.
    launcher_->call_in({}, [self = shared_from_this(), link] { self->events_.on_closed(link); });
  }
  void keep(std::uint64_t dump, std::vector<ports::flight_record>,
            std::function<void(result<std::string>)> done) override {
    launcher_->call_in(
        on_the_way, [dump, done = std::move(done)] { done(fmt::format("/run/stacks/{}", dump)); });
  }

  bool listens() const { return launcher_->alive() && events_.on_arrived != nullptr; }
  const host_ptr& launcher() const { return launcher_; }
  /// From the world.
  ports::worker_link takes(std::uint64_t process) {
    const auto link = ++last_;
    open_[link] = process;
    const auto pid = of_.record(process).pid;
    launcher_->call([self = shared_from_this(), link, pid] {
      self->events_.on_arrived({link, pid, pid});
    });
    return link;
  }
  void arrives(ports::worker_link link, const messages::any_msg& m) {
    of_.world_.events.in(on_the_way, [self = shared_from_this(), link, m] {
      self->launcher_->call([self, link, m] {
        if (self->open_.count(link) != 0)
          self->events_.on_message(link, m);
      });
    });
  }
  void ends(ports::worker_link link) {
    if (open_.erase(link) != 0)
      launcher_->call([self = shared_from_this(), link] { self->events_.on_closed(link); });
  }

 private:
  /// The process dials again.
  void lose(std::uint64_t process) {
    of_.talkers_.at(process).link = 0;
    of_.world_.events.in(pause, [&of = of_, process] { of.dial(process); });
  }

  channel& of_;
  host_ptr launcher_;
  ports::worker_link_events events_;
  ports::worker_link last_ = 0;
  std::map<ports::worker_link, std::uint64_t> open_; ///< with its process
};

class channel::starts final : public observer {
 public:
  explicit starts(channel& of) : of_(of) {}

  void process_started(const process_record& p) override {
    if (of_.dials_after && !p.stray && p.which != generation{})
      of_.world_.events.in(*of_.dials_after, [&of = of_, number = p.number] { of.dial(number); });
  }
  void process_ended(const process_record& p) override {
    const auto found = of_.talkers_.find(p.number);
    if (found == of_.talkers_.end() || found->second.link == 0)
      return;
    of_.world_.events.in({}, [&of = of_, number = p.number, link = found->second.link] {
      if (const auto to = of.supervisor_of(number))
        to->ends(link);
    });
  }

 private:
  channel& of_;
};

channel::channel(world& of, trainers& training, progress& pages)
    : world_(of), training_(training), pages_(pages) {
  world_.observers.push_back(std::make_shared<starts>(*this));
}

std::shared_ptr<ports::worker_links> channel::host_of(const host_ptr& launcher) {
  auto made = std::make_shared<links>(*this, launcher);
  listeners_[launcher->name()] = made;
  // Those that an earlier one had, which has crashed.
  for (auto& [process, t] : talkers_)
    if (record(process).node == launcher->name() && std::exchange(t.link, 0) != 0)
      world_.events.in(pause, [this, process = process] { dial(process); });
  return made;
}

std::shared_ptr<channel::links> channel::supervisor_of(std::uint64_t process) const {
  const auto found = listeners_.find(record(process).node);
  const auto there = found == listeners_.end() ? nullptr : found->second.lock();
  return there && there->listens() ? there : nullptr;
}

bool channel::runs(std::uint64_t process) const {
  const auto& p = record(process);
  return !p.ended && !p.killed;
}

void channel::dial(std::uint64_t process) {
  const auto known = talkers_.find(process);
  if (!runs(process) || (known != talkers_.end() && known->second.link != 0))
    return;
  const auto to = supervisor_of(process);
  if (!to)
    return world_.events.in(pause, [this, process] { dial(process); });
  const auto& p = record(process);
  auto& t =
      talkers_.try_emplace(process, talker{0, messages::author(name_of(p)), 0, {}}).first->second;
  t.link = to->takes(process);
  say(process, t.author
                   .write<messages::WorkerHello>(p.which,
                                                 [&](auto b) {
                                                   b.setRank(p.rank);
                                                   b.setLocalRank(p.local);
                                                   b.setPid(static_cast<std::uint32_t>(p.pid));
                                                   b.setGeneration(p.which.value);
                                                   b.setVersion("0.1.0");
                                                   b.setPython("3.11.2");
                                                   b.setTorch("2.13.0");
                                                   b.setFirstStepNs(t.first_step_ns);
                                                 })
                   .any());
  if (t.first_step_ns == 0 && pages_.every)
    world_.events.in(*pages_.every, [this, process] { first_step(process); });
}

void channel::first_step(std::uint64_t process) {
  auto& t = talkers_.at(process);
  const auto to = supervisor_of(process);
  if (t.first_step_ns != 0 || t.link == 0 || !to || !runs(process))
    return;
  t.first_step_ns = nanoseconds(to->launcher()->now());
  say(process, t.author
                   .write<messages::FirstStep>(record(process).which,
                                               [&t](auto b) { b.setAtNs(t.first_step_ns); })
                   .any());
}

void channel::say(std::uint64_t process, const messages::any_msg& m) {
  const auto to = supervisor_of(process);
  const auto link = talkers_.at(process).link;
  if (!to || link == 0)
    return;
  const auto& p = record(process);
  world_.write(name_of(p), fmt::format("> {} {}", p.node, messages::to_text(m)));
  to->arrives(link, m);
}

void channel::hear(std::uint64_t process, const messages::any_msg& m) {
  auto& t = talkers_.at(process);
  if (!runs(process))
    return;
  if (m.is<messages::GoOn>())
    return end_by_signal(process);
  if (m.is<messages::FlightRecordRequest>())
    say(process, t.author
                     .answer<messages::FlightRecord>(
                         m.envelope(),
                         [](auto b) {
                           b.setPiece({reinterpret_cast<const kj::byte*>("{}"), 2});
                           b.setBytes(2);
                         })
                     .any());
}

void channel::hit(std::uint64_t process, int signal) {
  const auto& p = record(process);
  auto& t =
      talkers_.try_emplace(process, talker{0, messages::author(name_of(p)), 0, {}}).first->second;
  t.hit_by = signal;
  world_.events.in(limits::fatal_signal_wait, [this, process] { end_by_signal(process); });
  say(process,
      messages::with_correlation(t.author.write<messages::FatalSignal>(p.which,
                                                                       [&](auto b) {
                                                                         b.setSignal(signal);
                                                                         b.setThread(p.pid);
                                                                       }),
                                 1)
          .any());
}

void channel::end_by_signal(std::uint64_t process) {
  auto& t = talkers_.at(process);
  if (t.hit_by && runs(process))
    training_.exit(process, {true, *t.hit_by});
}

} // namespace troupe::sim
