#include "diag/progress/page_writer.hpp"

#include "diag/progress/histogram.hpp"

#include <algorithm>

namespace troupe::diag {

namespace {

std::uint64_t since(std::uint64_t then, std::uint64_t now) {
  return now > then ? now - then : 0;
}

void add_one(word& to) {
  to.store(to.load(relaxed) + 1, relaxed);
}

void raise(word& to, std::uint64_t value) {
  if (value > to.load(relaxed))
    to.store(value, relaxed);
}

/// Ends with a 0, whatever `text` is; what does not fit is cut.
template<class Chars>
void put(Chars& to, std::string_view text) {
  const auto length = std::min(text.size(), to.size() - 1);
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i].store(i < length ? text[i] : '\0', relaxed);
}

void clear(duration_histogram& durations) {
  for (auto& each : durations.counts)
    each.store(0, relaxed);
}

template<class Chars>
bool is(const Chars& from, std::string_view text) {
  const auto length = std::min(text.size(), from.size() - 1);
  for (std::size_t i = 0; i < length; ++i)
    if (from[i].load(relaxed) != text[i])
      return false;
  return from[length].load(relaxed) == '\0';
}

} // namespace

void page_writer::take(std::uint64_t pid, std::uint64_t now) {
  page_.magic.store(0, std::memory_order_release);
  for (row i = 0; i < no_row; ++i)
    release(i);
  for (auto* each :
       {&page_.feeds, &page_.step, &page_.steps_made, &page_.step_ns, &page_.step_longest_ns,
        &page_.touched_ns, &page_.script_thread, &page_.noted_ns})
    each->store(0, relaxed);
  clear(page_.step_durations);
  clear(page_.silences);
  for (auto& each : page_.each_phase) {
    each.entered.store(0, relaxed);
    each.longest_ns.store(0, relaxed);
    clear(each.durations);
  }
  put(page_.user_phase, {});
  page_.pid.store(pid, relaxed);
  page_.phase_now.store(static_cast<std::uint64_t>(phase::other), relaxed);
  page_.phase_ns.store(now, relaxed);
  page_.magic.store(progress_page::magic_now, std::memory_order_release);
}

void page_writer::feeds(feed from) {
  page_.feeds.fetch_or(static_cast<std::uint64_t>(from), relaxed);
}

/// Several threads may add at once, and lose a count: of hundreds that is nothing.
void page_writer::note(std::uint64_t now) {
  const auto last = page_.noted_ns.load(relaxed);
  page_.noted_ns.store(now, relaxed);
  if (last != 0)
    add(page_.silences, since(last, now));
}

void page_writer::script_thread(std::uint64_t id) {
  page_.script_thread.store(id, relaxed);
}

void page_writer::step(std::uint64_t number, std::uint64_t now) {
  note(now);
  if (const auto last = page_.step_ns.load(relaxed); last != 0) {
    const auto took = since(last, now);
    add(page_.step_durations, took);
    raise(page_.step_longest_ns, took);
  }
  page_.step.store(number, relaxed);
  add_one(page_.steps_made);
  page_.step_ns.store(now, relaxed);
}

void page_writer::step(std::uint64_t now) {
  step(page_.step.load(relaxed) + 1, now);
}

void page_writer::touch(std::uint64_t now) {
  page_.touched_ns.store(now, relaxed);
  note(now);
}

void page_writer::turn_to(phase which, std::string_view name, std::uint64_t now) {
  const auto before = page_.phase_now.load(relaxed) % phases;
  auto& ended = page_.each_phase[before];
  const auto took = since(page_.phase_ns.load(relaxed), now);
  add(ended.durations, took);
  raise(ended.longest_ns, took);
  if (which == phase::user)
    put(page_.user_phase, name);
  add_one(page_.each_phase[static_cast<std::size_t>(which)].entered);
  page_.phase_now.store(static_cast<std::uint64_t>(which), relaxed);
  page_.phase_ns.store(now, relaxed);
  note(now);
}

void page_writer::enter(phase which, std::string_view name, std::uint64_t now) {
  if (depth_ >= depth_max) {
    ++deeper_;
    return;
  }
  auto& top = open_[depth_++];
  top.which = which;
  if (which == phase::user) {
    const auto length = std::min(name.size(), top.name.size() - 1);
    std::copy_n(name.begin(), length, top.name.begin());
    top.name[length] = '\0';
  }
  turn_to(which, name, now);
}

void page_writer::leave(phase which, std::uint64_t now) {
  if (deeper_ > 0) {
    --deeper_;
    return;
  }
  auto at = depth_;
  while (at > 0 && open_[at - 1].which != which)
    --at;
  if (at == 0)
    return;
  const auto innermost = at == depth_;
  std::copy(open_.begin() + static_cast<std::ptrdiff_t>(at),
            open_.begin() + static_cast<std::ptrdiff_t>(depth_),
            open_.begin() + static_cast<std::ptrdiff_t>(at) - 1);
  --depth_;
  if (!innermost)
    return;
  if (depth_ == 0)
    turn_to(phase::other, {}, now);
  else
    turn_to(open_[depth_ - 1].which, open_[depth_ - 1].name.data(), now);
}

bool page_writer::is_in(phase which) const {
  return std::any_of(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(depth_),
                     [&](const auto& each) { return each.which == which; });
}

page_writer::row page_writer::new_row() {
  for (row i = 0; i < no_row; ++i)
    if (!taken_[i].load(relaxed) && !taken_[i].exchange(true, std::memory_order_acquire))
      return i;
  return no_row;
}

page_writer::row page_writer::communicator(std::string_view name, std::uint64_t members,
                                           std::uint64_t members_hash) {
  for (row i = 0; i < no_row; ++i)
    if (taken_[i].load(std::memory_order_acquire) && is(page_.communicators[i].name, name))
      return i;
  const auto made = new_row();
  rename(made, name, members, members_hash);
  return made;
}

std::array<char, communicator_words::name_bytes> page_writer::name_of(row which) const {
  std::array<char, communicator_words::name_bytes> name{};
  if (which < no_row)
    for (std::size_t i = 0; i + 1 < name.size(); ++i)
      name[i] = page_.communicators[which].name[i].load(relaxed);
  return name;
}

void page_writer::release(row which) {
  if (which >= no_row)
    return;
  rename(which, {}, 0, 0);
  auto& of = page_.communicators[which];
  for (auto* each :
       {&of.entered, &of.left, &of.entered_ns, &of.left_ns, &of.kind, &of.bytes, &of.waited_ns})
    each->store(0, relaxed);
  in_flight_[which].count.store(0, relaxed);
  taken_[which].store(false, std::memory_order_release);
}

void page_writer::rename(row which, std::string_view name, std::uint64_t members,
                         std::uint64_t members_hash) {
  if (which >= no_row)
    return;
  auto& to = page_.communicators[which];
  put(to.name, name);
  to.members.store(members, relaxed);
  to.members_hash.store(members_hash, relaxed);
}

void page_writer::entered(row which, collective kind, std::uint64_t bytes, std::uint64_t now) {
  if (which >= no_row)
    return;
  auto& in = page_.communicators[which];
  auto& flying = in_flight_[which];
  if (flying.count.fetch_add(1, relaxed) == 0)
    flying.since.store(now, relaxed);
  in.kind.store(static_cast<std::uint64_t>(kind), relaxed);
  in.bytes.store(bytes, relaxed);
  in.entered_ns.store(now, relaxed);
  in.entered.fetch_add(1, relaxed);
  note(now);
}

void page_writer::entered_only(row which, collective kind, std::uint64_t now) {
  if (which >= no_row)
    return;
  auto& in = page_.communicators[which];
  in.kind.store(static_cast<std::uint64_t>(kind) | communicator_words::ends_unknown, relaxed);
  in.entered_ns.store(now, relaxed);
  in.entered.fetch_add(1, relaxed);
  note(now);
}

void page_writer::left(row which, std::uint64_t now) {
  if (which >= no_row)
    return;
  auto& in = page_.communicators[which];
  auto& flying = in_flight_[which];
  auto open = flying.count.load(relaxed);
  do
    if (open == 0)
      return;
  while (!flying.count.compare_exchange_weak(open, open - 1, relaxed));
  if (open == 1)
    in.waited_ns.fetch_add(since(flying.since.load(relaxed), now), relaxed);
  in.left.fetch_add(1, relaxed);
  in.left_ns.store(now, relaxed);
  note(now);
}

} // namespace troupe::diag
