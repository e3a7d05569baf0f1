// What each request does.

#include "runtime/base/invariant.hpp"
#include "runtime/tcpstore/store_core.hpp"

namespace troupe::tcpstore {

namespace {

/// What CHECK, and a wait that was given up, are answered with; else it is `wait_over`.
constexpr std::uint8_t ready = 0, not_ready = 1, cancelled = 1;

} // namespace

template<class T>
bool store_core::worked(client_id who, const result<T>& r) {
  if (!r)
    close(who, r.error().what);
  return r.has_value();
}

void store_core::perform(client_id who, const request& r) {
  switch (r.what) {
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
      answer_text(who, done->now);
      if (done->stored)
        wake_all(r.key);
    }
    return;
  case operation::add:
    if (const auto sum = keys_.add(r.key, r.number); worked(who, sum)) {
      answer_number(who, *sum);
      wake_all(r.key);
    }
    return;
  case operation::get: {
    const auto* value = keys_.find(r.key);
    return answer_text(who, value ? std::string_view(*value) : std::string_view());
  }
  case operation::delete_key:
    return answer_number(who, keys_.erase(r.key) ? 1 : 0);
  default:
    invariant(false, "no operation on a key");
  }
}

void store_core::perform_on_queue(client_id who, const request& r) {
  if (r.what == operation::queue_push) {
    if (worked(who, keys_.push(r.key, r.value)))
      wake_one(r.key);
    return;
  }
  const auto length = static_cast<std::int64_t>(keys_.length(r.key));
  answer_number(who, length);
  if (r.what == operation::queue_pop)
    if (const auto first = keys_.pop(r.key))
      answer_text(who, *first);
}

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

void store_core::multi_set(client_id who, const request& r) {
  for (fields pairs(r.list); !pairs.done();) {
    const auto key = pairs.next();
    if (!worked(who, keys_.set(key, pairs.next())))
      return;
    wake_all(key);
  }
}

void store_core::list_keys(client_id who) {
  auto* out = room_for(who, sizeof(std::int64_t) + keys_.listed_bytes());
  if (!out)
    return;
  put_i64(*out, static_cast<std::int64_t>(keys_.size()));
  keys_.for_each_key([out](std::string_view key) { put_text(*out, key); });
}

// ---- waiting ----

bool store_core::is_there(std::string_view name) const {
  return keys_.find(name) || keys_.length(name) > 0;
}

void store_core::wait_for(client_id who, const request& r) {
  for (fields names(r.list); !names.done();) {
    const auto name = names.next();
    if (!is_there(name) && !enlist(who, name))
      return;
  }
  if (clients_[who].missing == 0)
    answer_byte(who, wait_over);
}

void store_core::come_to_barrier(client_id who, const request& r) {
  const auto count = keys_.add(r.key, 1);
  if (!worked(who, count))
    return;
  if (*count < r.number) {
    enlist(who, r.key);
    return;
  }
  wake_all(r.key);
  answer_byte(who, wait_over);
}

void store_core::cancel_wait(client_id who) {
  auto& c = clients_[who];
  forget_waits(c);
  c.now = phase::serving;
  answer_byte(who, cancelled);
}

} // namespace troupe::tcpstore
