#include "worker/python/optimizers.hpp"

#include "worker/python/exchanged.hpp"
#include "worker/troupe_worker.h"

namespace troupe::worker {

namespace {

/// Steps of others without one of the first: the script has gone on to these.
constexpr std::uint32_t others_before_change = 64;

void (*report)(std::uint32_t) = nullptr;
void *table_before = nullptr, *table_after = nullptr;
thread_local void* asked_last = nullptr;

/// An optimizer is known by its own table: a weak reference, so that it may be gone.
object* first = nullptr;
std::uint32_t others = 0;

/// The table, or nullptr if that is gone. The address is for comparison alone.
void* table_of_first() {
  if (first == nullptr)
    return nullptr;
  if (python.weak_reference == nullptr) {
    object* const there = python.weak_object(first);
    return there == python.none ? nullptr : there;
  }
  object* there = nullptr;
  if (python.weak_reference(first, &there) != 1)
    return nullptr;
  python.let_go(there);
  return there;
}

void choose(object* table) {
  if (first != nullptr)
    python.let_go(first);
  first = python.weak(table, nullptr);
  others = 0;
}

void ended(object* table) {
  const void* const known = table_of_first();
  if (known == table && table != nullptr)
    others = 0;
  else if (table != nullptr && (known == nullptr || ++others > others_before_change))
    choose(table);
  else {
    report(TROUPE_MINOR_OPTIMIZER_ENDS);
    return;
  }
  report(TROUPE_OPTIMIZER_ENDS);
}

std::intptr_t asked(const observer&, const arguments& with) {
  void* const table = with.word[0];
  if (table == table_before)
    report(TROUPE_OPTIMIZER_BEGINS);
  else if (table == table_after)
    ended(static_cast<object*>(asked_last));
  asked_last = table;
  return 0;
}

} // namespace

bool observe_optimizers(object* values, object* before, object* after,
                        void (*observed)(std::uint32_t event)) {
  report = observed;
  table_before = before;
  table_after = after;
  observer by;
  by.before = asked;
  return exchange(call_word(values), by);
}

} // namespace troupe::worker
