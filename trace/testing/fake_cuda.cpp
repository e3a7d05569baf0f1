#include "trace/testing/fake.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>

#include <unistd.h>

// libcuda.so.1, as far as the tracing library uses it.

namespace {

constexpr int invalid_handle = 400, not_ready = 600, capture_unsupported = 900;

struct stream {
  std::uint64_t busy_until = 0, operations = 0;
  std::uint64_t hung_from = ~std::uint64_t{0}; ///< this and later operations do not end
  bool capturing = false;
};

struct event {
  void* context = nullptr;
  void* in = nullptr;
  std::uint64_t at = 0, operation = 0;
};

std::mutex all;
std::map<void*, stream> streams;
std::uint64_t now = 1'000'000;
fake_counts counts{};
std::uint64_t records_that_fail = 0;

std::atomic<bool> blocked{false};
thread_local void* context = nullptr;
thread_local std::uint64_t duration = 1000;
thread_local int next_result = 0;
thread_local bool exempt = false;

bool over(const event& e) {
  return e.at <= now && e.operation < streams[e.in].hung_from;
}

} // namespace

extern "C" {

fake_counts fake_counted() {
  const std::lock_guard lock(all);
  return counts;
}

void fake_advance(std::uint64_t ns) {
  const std::lock_guard lock(all);
  now += ns;
}

void fake_duration(std::uint64_t ns) {
  duration = ns;
}

void fake_hang(void* handle, bool hung) {
  const std::lock_guard lock(all);
  auto& s = streams[handle];
  s.hung_from = hung ? s.operations : ~std::uint64_t{0};
}

void fake_capture(void* handle, bool capturing) {
  const std::lock_guard lock(all);
  streams[handle].capturing = capturing;
}

void fake_block_queries() {
  blocked = true;
}

void fake_fail_records(std::uint64_t count) {
  const std::lock_guard lock(all);
  records_that_fail = count;
}

void fake_next_result(int result) {
  next_result = result;
}

int fake_take_result() {
  const int result = next_result;
  next_result = 0;
  return result;
}

void fake_launch(void* handle) {
  const std::lock_guard lock(all);
  ++counts.launches;
  auto& s = streams[handle];
  if (s.capturing)
    return;
  s.busy_until = (s.busy_until > now ? s.busy_until : now) + duration;
  ++s.operations;
}

void fake_count_copy() {
  const std::lock_guard lock(all);
  ++counts.copies;
}

void fake_count_collective() {
  const std::lock_guard lock(all);
  ++counts.collectives;
}

void fake_count_product() {
  const std::lock_guard lock(all);
  ++counts.products;
}

int cuCtxGetCurrent(void** current) {
  *current = context;
  return 0;
}

int cuCtxSetCurrent(void* other) {
  context = other;
  return 0;
}

int cuEventCreate(void** made, unsigned) {
  const std::lock_guard lock(all);
  if (!context)
    return invalid_handle;
  ++counts.events_made;
  auto* e = new (std::nothrow) event;
  e->context = context;
  *made = e;
  return 0;
}

int cuEventDestroy_v2(void* handle) {
  delete static_cast<event*>(handle);
  return 0;
}

int cuEventRecord(void* handle, void* in) {
  const std::lock_guard lock(all);
  auto& e = *static_cast<event*>(handle);
  auto& s = streams[in];
  ++counts.records;
  if (s.capturing) {
    ++counts.records_in_capture;
    return capture_unsupported;
  }
  if (records_that_fail > 0) {
    --records_that_fail;
    return invalid_handle;
  }
  e.in = in;
  e.at = s.busy_until > now ? s.busy_until : now;
  // It is over with the operation before it.
  e.operation = s.operations == 0 ? 0 : s.operations - 1;
  return 0;
}

int cuEventQuery(void* handle) {
  while (blocked.load())
    pause();
  const std::lock_guard lock(all);
  const auto& e = *static_cast<event*>(handle);
  ++counts.queries;
  counts.wrong_context += e.context != context ? 1 : 0;
  counts.strict_threads += exempt ? 0 : 1;
  counts.ended += over(e) ? 1 : 0;
  return over(e) ? 0 : not_ready;
}

int cuEventElapsedTime(float* ms, void* from, void* to) {
  const std::lock_guard lock(all);
  const auto &a = *static_cast<event*>(from), &b = *static_cast<event*>(to);
  if (!over(a) || !over(b))
    return not_ready;
  *ms = static_cast<float>((static_cast<double>(b.at) - static_cast<double>(a.at)) / 1e6);
  return 0;
}

int cuStreamIsCapturing(void* in, int* status) {
  const std::lock_guard lock(all);
  *status = streams[in].capturing ? 1 : 0;
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  exempt = *mode == 2;
  *mode = 0;
  return 0;
}
}
