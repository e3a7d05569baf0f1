// What each request does.

#include "runtime/base/invariant.hpp"
#include "runtime/tcpstore/store_core.hpp"

namespace troupe::tcpstore {

namespace {

/// What CHECK, and a wait that was given up, are answered with; else it is `wait_over`.
constexpr std::uint8_t ready = 0, not_ready = 1, cancelled = 1;

} // namespace

template<class T>
/// What the store cannot hold ends the connection of the client that asked: the protocol has no
/// answer for a failure, and a client that took silence for success would go on as if its key were
/// there.
bool store_core::worked(client_id who, const result<T>& r) {
  if (!r)
    close(who, r.error().what);
  return r.has_value();
}

/// A request is whole and its lengths are judged: nothing here asks for more memory than a bound
/// allows, and nothing blocks but the client itself.
void store_core::perform(client_id who, const request& r) {
  switch (r.what) {
  // It has shown which release the client speaks; the reader has seen that.
  case operation::validate:
    return;
  case operation::ping:
    if (auto* out = room_for(who, sizeof(std::uint32_t)))
      put_u32(*out, static_cast<std::uint32_t>(r.number));
    return;
  case operation::num_keys:
    return answer_number(who, static_cast<std::int64_t>(keys_.size()));
  case operation::list_keys:
    return list_keys(who);
  case operation::cancel_wait:
    return cancel_wait(who);
  case operation::barrier:
    return come_to_barrier(who, r);
  case operation::check:
  case operation::wait:
  case operation::multi_get:
  case operation::multi_set:
    return perform_on_list(who, r);
  case operation::queue_push:
  case operation::queue_pop:
  case operation::queue_len:
    return perform_on_queue(who, r);
  default:
    return perform_on_key(who, r);
  }
}

/// Whatever gives a key a value wakes those that wait for it, by whichever request the value came.
void store_core::perform_on_key(client_id who, const request& r) {
  switch (r.what) {
  case operation::set:
    if (worked(who, keys_.set(r.key, r.value)))
      wake_all(r.key);
    return;
  case operation::append:
    if (worked(who, keys_.append(r.key, r.value)))
      wake_all(r.key);
    return;
  case operation::compare_set:
    if (const auto done = keys_.compare_set(r.key, r.expected, r.value); worked(who, done)) {
      // First of all: the text is valid until the next change of a key.
      answer_text(who, done->now);
      // A comparison that fails changes nothing, so nothing has come.
      if (done->stored)
        wake_all(r.key);
    }
    return;
  // A counter that was added to is a key that is there. That is how ranks meet: each adds, and the
  // last one sets what all wait for.
  case operation::add:
    if (const auto sum = keys_.add(r.key, r.number); worked(who, sum)) {
      answer_number(who, *sum);
      wake_all(r.key);
    }
    return;
  // A missing key is an empty text, as with torch: its clients wait for a key before they get it.
  case operation::get: {
    const auto* value = keys_.find(r.key);
    return answer_text(who, value ? std::string_view(*value) : std::string_view());
  }
  // No wait is undone by it: a key that has been there has come.
  case operation::delete_key:
    return answer_number(who, keys_.erase(r.key) ? 1 : 0);
  default:
    invariant(false, "no operation on a key");
  }
}

/// A push is for one: if it woke all, all but the first would find the queue empty.
void store_core::perform_on_queue(client_id who, const request& r) {
  if (r.what == operation::queue_push) {
    if (worked(who, keys_.push(r.key, r.value)))
      wake_one(r.key);
    return;
  }
  // The length from before the pop tells the client whether a value follows.
  const auto length = static_cast<std::int64_t>(keys_.length(r.key));
  answer_number(who, length);
  if (r.what == operation::queue_pop)
    if (const auto first = keys_.pop(r.key))
      answer_text(who, *first);
}

/// A check asks and never waits, so the first name that is missing decides.
void store_core::perform_on_list(client_id who, const request& r) {
  if (r.what == operation::wait)
    return wait_for(who, r);
  if (r.what == operation::multi_get)
    return multi_get(who, r);
  if (r.what == operation::multi_set)
    return multi_set(who, r);
  bool all = true;
  for (fields names(r.list); all && !names.done();)
    all = is_there(names.next());
  answer_byte(who, all ? ready : not_ready);
}

/// Measured before anything is written: an answer that would be too large is refused whole, and
/// none is sent in part.
void store_core::multi_get(client_id who, const request& r) {
  std::size_t size = 0;
  for (fields names(r.list); !names.done();) {
    const auto* value = keys_.find(names.next());
    size += sizeof(std::uint64_t) + (value ? value->size() : 0);
  }
  auto* out = room_for(who, size);
  for (fields names(r.list); out && !names.done();) {
    const auto* value = keys_.find(names.next());
    put_text(*out, value ? std::string_view(*value) : std::string_view());
  }
}

/// Each key is set and told at once: a failure in the middle leaves those before it, as single sets
/// would.
void store_core::multi_set(client_id who, const request& r) {
  for (fields pairs(r.list); !pairs.done();) {
    const auto key = pairs.next();
    if (!worked(who, keys_.set(key, pairs.next())))
      return;
    wake_all(key);
  }
}

void store_core::list_keys(client_id who) {
  // The whole list is measured beforehand, as many keys can make it larger than any answer may be.
  auto* out = room_for(who, sizeof(std::int64_t) + keys_.listed_bytes());
  if (!out)
    return;
  put_i64(*out, static_cast<std::int64_t>(keys_.size()));
  keys_.for_each_key([out](std::string_view key) { put_text(*out, key); });
}

// ---- waiting ----

/// A queue exists as long as something is in it: waiting for one is waiting for a push.
bool store_core::is_there(std::string_view name) const {
  return keys_.find(name) || keys_.length(name) > 0;
}

/// Names that are there already count as come, for good. The client blocks only for the others, and
/// at once for all of them.
void store_core::wait_for(client_id who, const request& r) {
  for (fields names(r.list); !names.done();) {
    const auto name = names.next();
    if (!is_there(name) && !enlist(who, name))
      return;
  }
  // Answered at once if all were there; else satisfy_first() answers with the last one that comes.
  if (clients_[who].missing == 0)
    answer_byte(who, wait_over);
}

/// The count is a key, and outlives the barrier: a rank that comes again finds it complete and does
/// not wait for the others, which have gone on.
void store_core::come_to_barrier(client_id who, const request& r) {
  const auto count = keys_.add(r.key, 1);
  if (!worked(who, count))
    return;
  if (*count < r.number) {
    // Under the key itself; a plain set of it would release the barrier too.
    enlist(who, r.key);
    return;
  }
  // The last to come is answered after the others, in the one event: all leave together.
  wake_all(r.key);
  answer_byte(who, wait_over);
}

/// A client that gives up a barrier has been counted: with torch as well the others do not wait for
/// it again. If the key came first, the client hears both answers, and knows by their order.
void store_core::cancel_wait(client_id who) {
  auto& c = clients_[who];
  forget_waits(c);
  c.now = phase::serving;
  answer_byte(who, cancelled);
}

} // namespace troupe::tcpstore
