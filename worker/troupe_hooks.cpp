#include "worker/answer.hpp"
#include "worker/collectives/hooks.hpp"
#include "worker/progress/members.hpp"
#include "worker/progress/own_page.hpp"
#include "worker/troupe_worker.h"

using namespace troupe::worker;

uint64_t troupe_hook_collectives(char* why, size_t why_bytes) {
  try {
    take_page();
    const auto done = hook_process_groups();
    troupe::ckpt::tell(done.why, why, why_bytes);
    return done.feeds;
  } catch (const std::exception& e) {
    troupe::ckpt::tell(e.what(), why, why_bytes);
    return 0;
  }
}

void troupe_name_next(const char* name, const uint32_t* members, size_t member_count) {
  name_next(name, member_count, hash_of(members, member_count));
}

void troupe_named() {
  named();
}
