#include "runtime/tcpstore/store_core.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::tcpstore {

namespace {

/// Memory of a client that has become idle is given back beyond this. Most of a job's life its
/// clients are idle, and there is one for each rank of the world.
constexpr std::size_t idle_capacity = 4u << 10;

void empty(std::string& s) {
  s.clear();
  if (s.capacity() > idle_capacity)
    s.shrink_to_fit();
}

} // namespace

// ---- connections ----

/// Numbers are used again, so that what a client costs is bounded by those there are at once and
/// not by those there ever were.
std::optional<client_id> store_core::connected() {
  // The protocol has no authentication: a stranger that reaches the port can open connections too.
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

/// What it waited for has to go first: a name's line must hold no client whose number belongs to
/// the next one.
void store_core::disconnected(client_id who) {
  auto& c = clients_.at(who);
  invariant(c.now != phase::free, "a client left twice");
  forget_waits(c);
  traffic_.give(c.held.size() + c.out.size() - c.out_sent);
  c = client{};
  free_.push_back(who);
}

/// The connection outlives this for a moment, since its owner has still to close it. Until
/// disconnected() it is only deaf and mute; its bytes count until they are free.
void store_core::close(client_id who, std::string why) {
  auto& c = clients_[who];
  // The first reason is the one that is told.
  if (c.now == phase::closed)
    return;
  forget_waits(c);
  c.now = phase::closed;
  changes_.closed.push_back({who, std::move(why)});
}

/// Two buffers that are swapped: the owner goes through the changes of the last event while its own
/// calls already make new ones.
const store_core::changes& store_core::take_changes() {
  for (const auto who : changes_.answered)
    clients_[who].answered = false;
  std::swap(changes_, taken_);
  changes_.answered.clear();
  changes_.resumed.clear();
  changes_.closed.clear();
  return taken_;
}

/// What is gone is skipped and not cut off: cutting moves the rest, see sent().
std::string_view store_core::answers(client_id who) const {
  const auto& c = clients_.at(who);
  return std::string_view(c.out).substr(c.out_sent);
}

/// A client that waits, for a key or for its own answers, may go on sending: behind the wait comes
/// its cancellation, which has to be read. The bound keeps a client that sends without end from
/// filling the memory.
bool store_core::wants_input(client_id who) const {
  const auto& c = clients_.at(who);
  if (c.now == phase::closed)
    return false;
  const bool waits = c.now == phase::blocked || c.stalled;
  return !waits || c.held.size() < bounds_.held_back_max;
}

/// Told when it changes and only then: a connection that is not read from asks nothing by itself.
void store_core::note_appetite(client_id who) {
  auto& c = clients_[who];
  const bool full = !wants_input(who);
  if (std::exchange(c.full, full) && !full)
    changes_.resumed.push_back(who);
}

// ---- input ----

/// Those that this client woke are served after it: their held requests may wake others, and a
/// recursion would be as deep as the job is wide.
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
  // An answer that was taken in part is moved only when more than half is gone: each byte is moved
  // once at most, on average.
  if (left == 0) {
    empty(c.out);
    c.out_sent = 0;
  } else if (c.out_sent > left) {
    c.out.erase(0, c.out_sent);
    c.out_sent = 0;
  }
  // Half of the bound, and not the bound itself: else a client that reads slowly would stop and go
  // with every answer.
  if (c.stalled && left <= bounds_.answers_pause / 2) {
    c.stalled = false;
    serve(who, {});
    serve_the_woken();
  }
}

/// Serves what was held back, and then `bytes`; holds back what is not complete or not its turn.
/// The common case is a request that is whole in what was just read: it is served out of the
/// reader's buffer, without a copy. Only what has to wait is copied, and counted.
void store_core::serve(client_id who, std::string_view bytes) {
  auto& c = clients_.at(who);
  // What it held is still counted, and given back by disconnected().
  if (c.now == phase::closed)
    return;
  const bool direct = c.held.empty();
  if (!direct) {
    // Counted before it is kept: with all clients together the bound holds at every moment.
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

/// Requests of one client are served in order until one blocks or the answers pile up. Everything
/// behind it stays bytes, which is cheaper than a queue of requests.
std::size_t store_core::serve_what_it_can(client_id who, std::string_view bytes) {
  auto& c = clients_[who];
  std::size_t used = 0;
  request r;
  while (used < bytes.size() && c.now != phase::closed && !c.stalled) {
    const auto rest = bytes.substr(used);
    // A cancellation is the one request that is read behind a wait: it ends that wait.
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
    // Looked at after each request, as one of them may be answered with megabytes.
    c.stalled = c.out.size() - c.out_sent > bounds_.answers_pause;
  }
  return used;
}

/// A loop and a list: one client's held request may wake the next, and so on through the whole
/// world.
void store_core::serve_the_woken() {
  while (!woken_.empty()) {
    const auto who = woken_.back();
    woken_.pop_back();
    // It may have been closed, or have blocked again, since it was woken.
    if (clients_[who].now == phase::serving)
      serve(who, {});
  }
}

// ---- waiting ----

/// From here on it is blocked. Waiting costs memory too, and names may be long: it is counted, or
/// one client could fill the store with waits for keys that never come.
bool store_core::enlist(client_id who, std::string_view name) {
  auto& c = clients_[who];
  const auto cost = 2 * budget::node_cost + name.size();
  if (!traffic_.take(cost)) {
    close(who, "too much is waited for in this store");
    return false;
  }
  c.cost += cost;
  auto at = waiting_.find(name);
  // A line exists as long as something stands in it.
  if (at == waiting_.end())
    // The only copy of the name; all that wait for it share it.
    at = waiting_.emplace(std::string(name), line{}).first;
  at->second.push_back({who, c.waits.size()});
  c.waits.push_back({at, std::prev(at->second.end()), false});
  ++c.missing;
  c.now = phase::blocked;
  return true;
}

/// A value that was set is there for all that wait for it, and stays there.
void store_core::wake_all(std::string_view name) {
  const auto at = waiting_.find(name);
  if (at == waiting_.end())
    return;
  while (!at->second.empty())
    satisfy_first(at->second);
  waiting_.erase(at);
}

/// What one has pushed only one can pop. Those that have other names to wait for are passed over:
/// they do not pop, and a push that woke only them would wake none that can.
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

/// Takes the first one off the line. Whether that was the last thing it had waited for. A name that
/// came once counts, though it may be gone again when the last one comes: a client that waits for
/// several cannot be told which of them it missed.
bool store_core::satisfy_first(line& names) {
  const auto w = names.front();
  names.pop_front();
  auto& c = clients_[w.who];
  // Marked and not erased, as the other waits of this client are known by their numbers.
  c.waits[w.nth].over = true;
  if (--c.missing > 0)
    return false;
  forget_waits(c);
  c.now = phase::serving;
  answer_byte(w.who, wait_over);
  // Not served from here: this may be in the middle of another client's request.
  woken_.push_back(w.who);
  return true;
}

/// Each wait knows its place in its line, so that a client which leaves costs what it waited for,
/// and not a search through all that wait.
void store_core::forget_waits(client& c) {
  for (const auto& w : c.waits) {
    // Its place in the line is gone already.
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

/// Where to write an answer of `size` bytes; null if it may not be. Every answer passes here, so
/// that no answer escapes the two bounds: one for each answer, one for all that is on its way.
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
  // Once for each event, however many answers: the owner sends them in one go.
  if (!std::exchange(c.answered, true))
    changes_.answered.push_back(who);
  return &c.out;
}

/// Answers go to the end of one text: their order is that of the requests, and needs no other
/// record.
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
