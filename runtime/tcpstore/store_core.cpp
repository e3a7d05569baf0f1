#include "runtime/tcpstore/store_core.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::tcpstore {

namespace {

/// Memory of a client that has become idle is given back beyond this.
constexpr std::size_t idle_capacity = 4u << 10;

void empty(std::string& s) {
  s.clear();
  if (s.capacity() > idle_capacity)
    s.shrink_to_fit();
}

} // namespace

// ---- connections ----

std::optional<client_id> store_core::connected() {
  if (clients() >= bounds_.clients_max)
    return std::nullopt;
  if (free_.empty()) {
    free_.push_back(static_cast<client_id>(clients_.size()));
    clients_.emplace_back();
  }
  const auto who = free_.back();
  free_.pop_back();
  clients_[who].now = phase::serving;
  return who;
}

void store_core::disconnected(client_id who) {
  auto& c = clients_.at(who);
  invariant(c.now != phase::free, "a client left twice");
  forget_waits(c);
  traffic_.give(c.held.size() + c.out.size() - c.out_sent);
  c = client{};
  free_.push_back(who);
}

void store_core::close(client_id who, std::string why) {
  auto& c = clients_[who];
  if (c.now == phase::closed)
    return;
  forget_waits(c);
  c.now = phase::closed;
  changes_.closed.push_back({who, std::move(why)});
}

const store_core::changes& store_core::take_changes() {
  for (const auto who : changes_.answered)
    clients_[who].answered = false;
  std::swap(changes_, taken_);
  changes_.answered.clear();
  changes_.resumed.clear();
  changes_.closed.clear();
  return taken_;
}

std::string_view store_core::answers(client_id who) const {
  const auto& c = clients_.at(who);
  return std::string_view(c.out).substr(c.out_sent);
}

bool store_core::wants_input(client_id who) const {
  const auto& c = clients_.at(who);
  if (c.now == phase::closed)
    return false;
  const bool waits = c.now == phase::blocked || c.stalled;
  return !waits || c.held.size() < bounds_.held_back_max;
}

void store_core::note_appetite(client_id who) {
  auto& c = clients_[who];
  const bool full = !wants_input(who);
  if (std::exchange(c.full, full) && !full)
    changes_.resumed.push_back(who);
}

// ---- input ----

void store_core::received(client_id who, std::string_view bytes) {
  serve(who, bytes);
  serve_the_woken();
}

void store_core::sent(client_id who, std::size_t bytes) {
  auto& c = clients_.at(who);
  invariant(bytes <= c.out.size() - c.out_sent, "more was sent than there was");
  traffic_.give(bytes);
  c.out_sent += bytes;
  const auto left = c.out.size() - c.out_sent;
  if (left == 0) {
    empty(c.out);
    c.out_sent = 0;
  } else if (c.out_sent > left) {
    c.out.erase(0, c.out_sent);
    c.out_sent = 0;
  }
  if (c.stalled && left <= bounds_.answers_pause / 2) {
    c.stalled = false;
    serve(who, {});
    serve_the_woken();
  }
}

/// Serves what was held back, and then `bytes`; holds back what is not complete or not its turn.
void store_core::serve(client_id who, std::string_view bytes) {
  auto& c = clients_.at(who);
  if (c.now == phase::closed)
    return;
  const bool direct = c.held.empty();
  if (!direct) {
    if (!traffic_.take(bytes.size()))
      return close(who, "too much is on its way to this store and from it");
    c.held.append(bytes);
  }
  const auto used = serve_what_it_can(who, direct ? bytes : std::string_view(c.held));
  if (c.now == phase::closed)
    return;
  if (direct) {
    const auto rest = bytes.substr(used);
    if (!traffic_.take(rest.size()))
      return close(who, "too much is on its way to this store and from it");
    c.held.assign(rest);
  } else {
    traffic_.give(used);
    if (used == c.held.size())
      empty(c.held);
    else
      c.held.erase(0, used);
  }
  note_appetite(who);
}

std::size_t store_core::serve_what_it_can(client_id who, std::string_view bytes) {
  auto& c = clients_[who];
  std::size_t used = 0;
  request r;
  while (used < bytes.size() && c.now != phase::closed && !c.stalled) {
    const auto rest = bytes.substr(used);
    if (c.now == phase::blocked && !c.in.at_cancel_wait(rest))
      break;
    const auto status = c.in.read(rest, r);
    if (status == reader::status::incomplete)
      break;
    if (status == reader::status::violation) {
      close(who, c.in.why());
      break;
    }
    used += c.in.size();
    perform(who, r);
    c.stalled = c.out.size() - c.out_sent > bounds_.answers_pause;
  }
  return used;
}

void store_core::serve_the_woken() {
  while (!woken_.empty()) {
    const auto who = woken_.back();
    woken_.pop_back();
    if (clients_[who].now == phase::serving)
      serve(who, {});
  }
}

// ---- waiting ----

/// From here on it is blocked.
bool store_core::enlist(client_id who, std::string_view name) {
  auto& c = clients_[who];
  const auto cost = 2 * budget::node_cost + name.size();
  if (!traffic_.take(cost)) {
    close(who, "too much is waited for in this store");
    return false;
  }
  c.cost += cost;
  auto at = waiting_.find(name);
  if (at == waiting_.end())
    at = waiting_.emplace(std::string(name), line{}).first;
  at->second.push_back({who, c.waits.size()});
  c.waits.push_back({at, std::prev(at->second.end()), false});
  ++c.missing;
  c.now = phase::blocked;
  return true;
}

void store_core::wake_all(std::string_view name) {
  const auto at = waiting_.find(name);
  if (at == waiting_.end())
    return;
  while (!at->second.empty())
    satisfy_first(at->second);
  waiting_.erase(at);
}

/// What one has pushed only one can pop.
void store_core::wake_one(std::string_view name) {
  const auto at = waiting_.find(name);
  if (at == waiting_.end())
    return;
  while (!at->second.empty())
    if (satisfy_first(at->second))
      break;
  if (at->second.empty())
    waiting_.erase(at);
}

/// Takes the first one off the line. Whether that was the last thing it had waited for.
bool store_core::satisfy_first(line& names) {
  const auto w = names.front();
  names.pop_front();
  auto& c = clients_[w.who];
  c.waits[w.nth].over = true;
  if (--c.missing > 0)
    return false;
  forget_waits(c);
  c.now = phase::serving;
  answer_byte(w.who, wait_over);
  woken_.push_back(w.who);
  return true;
}

void store_core::forget_waits(client& c) {
  for (const auto& w : c.waits) {
    if (w.over)
      continue;
    w.name->second.erase(w.place);
    if (w.name->second.empty())
      waiting_.erase(w.name);
  }
  c.waits.clear();
  if (c.waits.capacity() * sizeof(wait) > idle_capacity)
    c.waits.shrink_to_fit();
  c.missing = 0;
  traffic_.give(std::exchange(c.cost, 0));
}

// ---- output ----

/// Where to write an answer of `size` bytes; null if it may not be.
std::string* store_core::room_for(client_id who, std::size_t size) {
  auto& c = clients_[who];
  if (c.now == phase::closed)
    return nullptr;
  if (size > bounds_.answer_max) {
    close(who, fmt::format("an answer of {} bytes; {} are allowed", size, bounds_.answer_max));
    return nullptr;
  }
  if (!traffic_.take(size)) {
    close(who, "too much is on its way to this store and from it");
    return nullptr;
  }
  if (!std::exchange(c.answered, true))
    changes_.answered.push_back(who);
  return &c.out;
}

void store_core::answer_byte(client_id who, std::uint8_t byte) {
  if (auto* out = room_for(who, sizeof(byte)))
    put_u8(*out, byte);
}

void store_core::answer_number(client_id who, std::int64_t number) {
  if (auto* out = room_for(who, sizeof(number)))
    put_i64(*out, number);
}

void store_core::answer_text(client_id who, std::string_view text) {
  if (auto* out = room_for(who, sizeof(std::uint64_t) + text.size()))
    put_text(*out, text);
}

} // namespace troupe::tcpstore
