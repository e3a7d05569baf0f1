#include "tests/sim/network.hpp"

#include "messages/text.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

/// A SYN that is lost is sent again after this long.
constexpr auto knock_again_after = 1s;

template<class T>
std::vector<std::shared_ptr<T>> living(std::vector<std::weak_ptr<T>>& all) {
  std::vector<std::shared_ptr<T>> found;
  for (const auto& weak : all)
    if (auto strong = weak.lock())
      found.push_back(std::move(strong));
  all.assign(found.begin(), found.end());
  return found;
}

} // namespace

// ---- What a process holds of the network ----

class sim_listener final : public ports::listener {
 public:
  sim_listener(network& of, host_ptr h, ports::endpoint where, network::listener_ptr d)
      : network_(of), host_(std::move(h)), where_(std::move(where)), listener_(std::move(d)) {}
  ~sim_listener() override { network_.close_listener(host_, where_, listener_); }

  ports::endpoint where() const override { return where_; }

 private:
  network& network_;
  host_ptr host_;
  ports::endpoint where_;
  network::listener_ptr listener_;
};

class sim_transport final : public ports::transport {
 public:
  sim_transport(network& of, host_ptr h) : network_(of), host_(std::move(h)) {}

  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint& where,
                                                  acceptor accept) override {
    ports::endpoint place = where;
    auto opened = network_.open_listener(host_, place, std::move(accept));
    if (!opened)
      return tl::make_unexpected(opened.error());
    return std::make_unique<sim_listener>(network_, host_, place, *opened);
  }

  void dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
            dialled done) override {
    network_.dial(host_, where, std::move(hello), std::move(done));
  }

 private:
  network& network_;
  host_ptr host_;
};

std::shared_ptr<ports::transport> network::transport_of(const host_ptr& h) {
  return std::make_shared<sim_transport>(*this, h);
}

// ---- Listeners ----

result<network::listener_ptr> network::open_listener(const host_ptr& h, ports::endpoint& where,
                                                     ports::transport::acceptor accept) {
  where.host = h->name();
  if (where.port == 0)
    where.port = next_port_++;
  if (listeners_.count(where))
    return failure(errc::refused,
                   fmt::format("cannot listen on {}: the port is in use", ports::to_string(where)));
  return listeners_[where] = std::make_shared<listener>(listener{h, std::move(accept), {}});
}

void network::close_listener(const host_ptr& h, const ports::endpoint& where,
                             const listener_ptr& d) {
  d->open = false;
  if (const auto found = listeners_.find(where); found != listeners_.end() && found->second == d)
    listeners_.erase(found);
  if (!h->alive())
    return;
  h->call_in({}, [d] {
    for (const auto& each : std::list<std::shared_ptr<sim_link>>(d->unproven))
      each->abort({errc::closed, "no longer listening"});
    d->accept = nullptr;
  });
}

/// A connection has come in, in the context of the host whose listener it is.
void network::meet(const listener_ptr& at, const std::string& from, std::uint64_t connection,
                   wire_ptr out, wire_ptr in) {
  auto end = std::make_shared<sim_link>(
      sim_link::place{&world_, at->here, from, connection, at->heard},
      link::link_core::accepting(link_options_, at->here->now()), std::move(out), std::move(in));
  remember(end);
  if (at->unproven.size() >= limits::unproven_connections_max)
    at->unproven.front()->abort(
        {errc::overloaded, "too many connections that have not said hello"});
  at->unproven.push_back(end);
  const std::weak_ptr<listener> weak = at;
  const auto forget = [weak, raw = end.get()] {
    if (const auto d = weak.lock())
      d->unproven.remove_if([raw](const auto& each) { return each.get() == raw; });
  };
  sim_link::outcome told;
  told.on_proven = [weak, forget](std::shared_ptr<sim_link> proven,
                                  messages::msg<messages::Hello> hello) {
    forget();
    if (const auto d = weak.lock(); d && d->accept)
      d->accept({std::make_shared<sim_connection>(std::move(proven)), std::move(hello)});
    else
      proven->close({errc::closed, "no longer listening"});
  };
  told.on_failed = [forget](const error&) { forget(); };
  end->start(std::move(told));
}

// ---- Dialling ----

struct network::dial_attempt {
  host_ptr from;
  ports::endpoint where;
  messages::msg<messages::Hello> hello;
  ports::transport::dialled done;
  instant deadline; ///< of the dialler's clock
  std::uint64_t question;

  void answer(world& w, result<ports::connection_ptr> with) const {
    w.tell(&observer::answered, question);
    done(std::move(with));
  }
};

void network::dial(const host_ptr& h, const ports::endpoint& named,
                   messages::msg<messages::Hello> hello, ports::transport::dialled done) {
  if (!h->alive())
    return; // its process has ended: no answer is waited for
  auto where = named;
  if (const auto found = resolved_.find({h->name(), named.host}); found != resolved_.end())
    where.host = found->second;
  auto attempt = std::make_shared<dial_attempt>(
      dial_attempt{h, where, std::move(hello), std::move(done), h->now() + limits::dial_within,
                   world_.next_question()});
  world_.tell(&observer::asked, attempt->question, h->name(), "a dial",
              world_.events.now() + 3 * limits::dial_within);
  world_.write(h->name(), fmt::format("> {} {}", where.host, messages::to_text(attempt->hello)));
  world_.tell(&observer::dialled, h->name(), attempt->hello);
  const auto& w = around(h->name());
  world_.events.in(world_.between(w.delay_min, w.delay_max), [this, attempt] { knock(attempt); });
}

/// A SYN arrives where it was sent to, or does not.
void network::knock(const std::shared_ptr<dial_attempt>& attempt) {
  const auto& from = attempt->from;
  const auto& target = attempt->where.host;
  if (!from->alive())
    return;
  const auto fail = [this, attempt](errc code, const char* why) {
    attempt->from->call([this, attempt, code, why] {
      attempt->answer(world_, failure(code, fmt::format("cannot connect to {}: {}",
                                                        ports::to_string(attempt->where), why)));
    });
  };
  if (from->now() >= attempt->deadline)
    return fail(errc::unavailable, "no answer in time");
  if (held(from->name(), target) || held(target, from->name()) || dark_.count(target)) {
    const auto left = attempt->deadline - from->now() + 1ms;
    world_.events.in(std::min<duration>(knock_again_after, left),
                     [this, attempt] { knock(attempt); });
    return;
  }
  const auto found = listeners_.find(attempt->where);
  const auto refusing = refusing_until_.find(target);
  const bool refused = refusing != refusing_until_.end() && world_.events.now() < refusing->second;
  if (found == listeners_.end() || refused)
    return fail(errc::closed, "connection refused");
  connect(attempt, found->second);
}

void network::connect(const std::shared_ptr<dial_attempt>& attempt, const listener_ptr& to) {
  const auto& h = attempt->from;
  const auto connection = ++connections_;
  const auto [forth, back] = lay_wires(h->name(), to->here->name());
  to->here->call([this, to, from = h->name(), connection, out = back, in = forth] {
    meet(to, from, connection, out, in);
  });
  h->call([this, attempt, connection, out = forth, in = back] {
    auto end = std::make_shared<sim_link>(
        sim_link::place{&world_, attempt->from, attempt->where.host, connection, nullptr},
        link::link_core::dialling(link_options_, attempt->from->now(), attempt->deadline,
                                  attempt->hello),
        out, in);
    remember(end);
    sim_link::outcome told;
    told.on_proven = [this, attempt](std::shared_ptr<sim_link> proven, const auto&) {
      attempt->answer(world_, std::make_shared<sim_connection>(std::move(proven)));
    };
    told.on_failed = [this, attempt](const error& why) {
      const bool for_good = why.code == errc::refused || why.code == errc::invalid;
      attempt->answer(world_, failure(for_good ? errc::refused : errc::closed,
                                      fmt::format("cannot connect to {}: {}",
                                                  ports::to_string(attempt->where), why.what)));
    };
    end->start(std::move(told));
  });
}

void network::stranger(const std::string& target, std::uint16_t port, std::vector<kj::byte> says) {
  const auto found = listeners_.find(ports::endpoint{target, port});
  if (found == listeners_.end() || !found->second->here->alive())
    return;
  const auto connection = ++connections_;
  const auto [forth, back] = lay_wires("stranger", target);
  back->on_arrival = [back = std::weak_ptr<wire>(back)] {
    if (const auto w = back.lock())
      w->take(SIZE_MAX);
  };
  forth->push_bytes(std::move(says));
  found->second->here->call([this, to = found->second, connection, out = back, in = forth] {
    meet(to, "stranger", connection, out, in);
  });
}

// ---- Wires ----

weather& network::around(const std::string& host) {
  return around_.emplace(host, everywhere_).first->second;
}

void network::calm() {
  everywhere_ = {};
  for (auto& [host, w] : around_) {
    w = {};
    world_.tell(&observer::weather_changed, host, false);
  }
  for (const auto& [from, to] : std::set<std::pair<std::string, std::string>>(held_))
    release(from, to);
  refusing_until_.clear();
}

bool network::held(const std::string& from, const std::string& to) const {
  return held_.count({from, to}) != 0;
}

std::pair<wire_ptr, wire_ptr> network::lay_wires(const std::string& one, const std::string& other) {
  const auto lay = [this, &one](const std::string& from, const std::string& to) {
    // The weather of a connection is that of the end that dialled: the other is everybody's master.
    auto w =
        std::make_shared<wire>(world_, around(one), [this, from, to] { return held(from, to); });
    wires_[{from, to}].push_back(w);
    return w;
  };
  const auto forth = lay(one, other);
  const auto back = lay(other, one);
  forth->back = back;
  back->back = forth;
  return {forth, back};
}

void network::remember(const std::shared_ptr<sim_link>& end) {
  auto& all = links_[end->where()->name()];
  (void)living(all);
  all.push_back(end);
}

void network::hold(const std::string& from, const std::string& to) {
  world_.write("-", fmt::format("! {} -> {} is held", from, to));
  if (held_.insert({from, to}).second)
    world_.tell(&observer::way_cut, from, to);
}

void network::release(const std::string& from, const std::string& to) {
  if (held_.erase({from, to}) == 0)
    return;
  world_.write("-", fmt::format("! {} -> {} is released", from, to));
  world_.tell(&observer::way_free, from, to);
  for (const auto& w : living(wires_[{from, to}]))
    w->release();
}

void network::break_links(const std::string& host) {
  world_.write(host, "! links break");
  for (auto& [ends, wires] : wires_)
    if (ends.first == host || ends.second == host)
      for (const auto& w : living(wires))
        w->cut();
}

void network::refuse_dials(const std::string& host, instant until) {
  world_.write(host, "! refuses dials");
  refusing_until_[host] = until;
}

void network::resolve(const std::string& from, const std::string& target, const std::string& to) {
  world_.write(from, fmt::format("! finds {} at {}", target, to));
  resolved_[{from, target}] = to;
}

void network::host_ended(const host_ptr& h, bool silently) {
  for (auto& [where, d] : std::map<ports::endpoint, listener_ptr>(listeners_))
    if (d->here == h)
      listeners_.erase(where);
  if (silently)
    dark_.insert(h->name());
  for (const auto& end : living(links_[h->name()]))
    if (end->where() == h)
      end->vanish(silently);
}

void network::machine_is_back(const std::string& host) {
  dark_.erase(host);
  for (auto& [ends, wires] : wires_)
    if (ends.second == host)
      for (const auto& w : living(wires))
        w->answer_again();
}

} // namespace troupe::sim
