#include "worker/python/troupe_python.h"

#include "worker/python/exchanged.hpp"
#include "worker/python/imports.hpp"
#include "worker/python/interpreter.hpp"
#include "worker/python/optimizers.hpp"
#include "worker/troupe_worker.h"

#include <cstring>

using namespace troupe::worker;

namespace {

troupe_python_feeds feeds{};

std::uint32_t word_of(std::int32_t event) {
  return static_cast<std::uint32_t>(event);
}

void observe(std::uint32_t event) {
  if (event != word_of(-1))
    feeds.observed(event);
}

std::intptr_t moment_before(const observer& self, const arguments&) {
  observe(self.first);
  return 0;
}

void* moment_after(const observer& self, const arguments&, std::intptr_t, void* result) {
  observe(self.second);
  return result;
}

void* moment_after_step(const observer& self, const arguments&, std::intptr_t, void* result) {
  observe(result == nullptr ? word_of(static_cast<std::int32_t>(self.more)) : self.second);
  return result;
}

std::intptr_t enter_phase(const observer& self, const arguments&) {
  feeds.phase_enter(self.first, nullptr);
  return 0;
}

void* leave_phase(const observer& self, const arguments&, std::intptr_t, void* result) {
  feeds.phase_leave(self.first);
  return result;
}

void* leave_if_failed(const observer& self, const arguments&, std::intptr_t, void* result) {
  if (result == nullptr)
    feeds.phase_leave(self.first);
  return result;
}

std::intptr_t tell_group(const observer& self, const arguments&) {
  return call_unseen(reinterpret_cast<object*>(self.more), python.none) ? 0 : 1;
}

/// An interrupt that came while the name was told ends this call; a group was made all the same.
void* end_of_group(const observer&, const arguments&, std::intptr_t was_interrupted, void* result) {
  feeds.named();
  if (was_interrupted == 0 || result == nullptr)
    return result;
  python.let_go(static_cast<object*>(result));
  return nullptr;
}

struct group_row {
  const void* group;
  std::int32_t row;
};
constexpr std::size_t groups_max = 256;
group_row groups[groups_max];
std::size_t groups_count = 0;

std::int32_t row_of(const void* group) {
  for (std::size_t i = groups_count; i-- > 0;)
    if (groups[i].group == group)
      return groups[i].row;
  return -1;
}

/// function(callable, arguments, count and flags, names of the last)
const void* group_in(const observer& self, const arguments& with) {
  auto* const* const values = static_cast<object* const*>(with.word[1]);
  const auto count = static_cast<std::ptrdiff_t>(reinterpret_cast<std::size_t>(with.word[2]) &
                                                 (static_cast<std::size_t>(-1) >> 1));
  object* group = self.more < count && self.more >= 0 ? values[self.more] : nullptr;
  auto* const names = static_cast<object*>(with.word[3]);
  for (std::ptrdiff_t i = 0; names != nullptr && i < python.tuple_size(names); ++i)
    if (python.compare(python.tuple_item(names, i), "group") == 0)
      group = values[count + i];
  return group == python.none ? nullptr : group;
}

std::intptr_t enter_collective(const observer& self, const arguments& with) {
  const auto row = row_of(group_in(self, with));
  feeds.collective_enter(row, self.first, 0);
  return row;
}

void* leave_collective(const observer&, const arguments&, std::intptr_t row, void* result) {
  feeds.collective_leave(static_cast<std::int32_t>(row));
  return result;
}

int exchanged(void** word, const observer& by) {
  return exchange(word, by) ? 1 : 0;
}

object* as_object(void* of) {
  return static_cast<object*>(of);
}

std::intptr_t kept(void* of) {
  python.hold(as_object(of));
  return reinterpret_cast<std::intptr_t>(of);
}

} // namespace

int troupe_python_begin(size_t header, int minor) {
  return find_interpreter(header, minor) ? 1 : 0;
}

int troupe_python_when_imported(void* exec, const char* name, void* action) {
  know_usual_call(as_object(action));
  return when_imported(as_object(exec), name, as_object(action)) ? 1 : 0;
}

void troupe_python_feed(const struct troupe_python_feeds* to) {
  feeds = *to;
}

int troupe_python_moments(void* callable, int32_t before, int32_t after) {
  return exchanged(call_word(as_object(callable)),
                   {moment_before, moment_after, word_of(before), word_of(after)});
}

int troupe_python_next(void* type, int32_t before, int32_t after, int32_t without) {
  return exchanged(next_word(as_object(type)),
                   {moment_before, moment_after_step, word_of(before), word_of(after), without});
}

int troupe_python_phase(void* callable, uint32_t kind, int when) {
  observer by;
  by.first = kind;
  if ((when & TROUPE_PYTHON_ENTERS) != 0)
    by.before = enter_phase;
  by.after = (when & TROUPE_PYTHON_LEAVES) != 0 ? leave_phase : leave_if_failed;
  return exchanged(call_word(as_object(callable)), by);
}

int troupe_python_end(void* type, void* plain, uint32_t kind) {
  void** const word = end_word(as_object(type));
  void* const* const usual = end_word(as_object(plain));
  if (word == nullptr || usual == nullptr || *word == *usual)
    return 0;
  return exchanged(word, {nullptr, leave_phase, kind});
}

int troupe_python_optimizers(void* values, void* before, void* after) {
  return observe_optimizers(as_object(values), as_object(before), as_object(after), feeds.observed)
             ? 1
             : 0;
}

int troupe_python_groups(void* callable, void* tell) {
  return exchanged(call_word(as_object(callable)), {tell_group, end_of_group, 0, 0, kept(tell)});
}

int troupe_python_collective(void* callable, uint32_t kind, int position) {
  return exchanged(call_word(as_object(callable)),
                   {enter_collective, leave_collective, kind, 0, position});
}

void troupe_python_group(const void* group, int32_t communicator) {
  if (groups_count == groups_max) // the oldest but the default group
    std::memmove(groups + 1, groups + 2, sizeof groups[0] * (--groups_count - 1));
  groups[groups_count++] = {group, communicator};
}
