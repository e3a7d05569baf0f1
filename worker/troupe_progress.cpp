#include "worker/progress/grad_mode.hpp"
#include "worker/progress/members.hpp"
#include "worker/progress/observed_script.hpp"
#include "worker/progress/own_page.hpp"
#include "worker/troupe_worker.h"

#include <atomic>

using namespace troupe;
using namespace troupe::worker;

namespace {

/// Its own count is what the script means by a step.
std::atomic<bool> script_counts{false};

/// Of the script's thread.
observed_script observed;

constexpr std::uint32_t collectives = static_cast<std::uint32_t>(diag::collective::other) + 1;

diag::page_writer::row row_of(std::int32_t communicator) {
  return communicator < 0 ? diag::page_writer::no_row
                          : static_cast<diag::page_writer::row>(communicator);
}

void script_says_steps() {
  if (script_counts.load(std::memory_order_relaxed))
    return;
  script_counts.store(true, std::memory_order_relaxed);
  page().feeds(diag::feed::steps_by_script);
}

/// Steps of a second thread are progress, but the numbers are one thread's.
template<class Number>
void step(Number&& number) {
  const auto now = now_ns();
  if (!makes_steps()) {
    page().touch(now);
    return;
  }
  number(now);
  step_made(now);
}

} // namespace

static_assert(TROUPE_USER == static_cast<int>(diag::phase::user));
static_assert(TROUPE_OTHER_COLLECTIVE == static_cast<int>(diag::collective::other));
static_assert(TROUPE_GRADIENTS_SWITCHED == static_cast<int>(moment::gradients_switched));
static_assert(TROUPE_FEED_PHASES == static_cast<int>(diag::feed::phase_changes));

int troupe_take_page() {
  return take_page() ? 1 : 0;
}

void troupe_feeds(uint64_t bits) {
  page().feeds(static_cast<diag::feed>(bits));
}

void troupe_step(uint64_t number) {
  script_says_steps();
  step([number](std::uint64_t now) { page().step(number, now); });
}

void troupe_next_step() {
  script_says_steps();
  step([](std::uint64_t now) { page().step(now); });
}

void troupe_touch() {
  page().touch(now_ns());
}

void troupe_phase_enter(uint32_t kind, const char* name) {
  if (kind < diag::phases && is_script_thread())
    page().enter(static_cast<diag::phase>(kind), name == nullptr ? "" : name, now_ns());
}

void troupe_phase_leave(uint32_t kind) {
  if (kind < diag::phases && is_script_thread())
    page().leave(static_cast<diag::phase>(kind), now_ns());
}

void troupe_observed(uint32_t event) {
  const auto seen = static_cast<moment>(event);
  if (seen == moment::optimizer_ends && !script_counts.load(std::memory_order_relaxed))
    step([](std::uint64_t now) { page().step(now); });
  if (is_script_thread())
    observed.see(page(), seen, records_gradients(), now_ns());
}

int32_t troupe_communicator(const char* name, const uint32_t* members, size_t member_count) {
  const auto row = page().communicator(name, member_count, hash_of(members, member_count));
  return row == diag::page_writer::no_row ? -1 : static_cast<int32_t>(row);
}

void troupe_collective_enter(int32_t communicator, uint32_t kind, uint64_t bytes) {
  const auto which = static_cast<diag::collective>(kind < collectives ? kind : collectives - 1);
  makes_collective();
  page().entered(row_of(communicator), which, bytes, now_ns());
}

void troupe_collective_leave(int32_t communicator) {
  page().left(row_of(communicator), now_ns());
}
