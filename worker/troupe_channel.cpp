#include "worker/answer.hpp"
#include "worker/channel/channel.hpp"
#include "worker/channel/flight_record.hpp"
#include "worker/progress/own_page.hpp"
#include "worker/troupe_worker.h"

using namespace troupe;
using namespace troupe::worker;

int64_t troupe_flight_record(char* out, size_t out_bytes, char* why, size_t why_bytes) {
  std::int64_t bytes = -1;
  ckpt::answer(why, why_bytes, [&]() -> result<void> {
    const auto told = flight_record();
    if (!told)
      return tl::make_unexpected(told.error());
    ckpt::tell(*told, out, out_bytes);
    bytes = static_cast<std::int64_t>(told->size());
    return {};
  });
  return bytes;
}

int troupe_begin_channel(const char* python, const char* torch) {
  try {
    return take_page() &&
                   begin_channel({python == nullptr ? "" : python, torch == nullptr ? "" : torch})
               ? 1
               : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

void troupe_stacks_by(int32_t signal) {
  tells_stacks_on(signal);
}
