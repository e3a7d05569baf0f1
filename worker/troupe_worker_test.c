/* The header is C, and a C program needs nothing else. */
#include "worker/troupe_worker.h"

int troupe_c_program(void);

int troupe_c_program(void) {
  const uint32_t members[] = {0, 1};
  const int32_t world = troupe_communicator("default_pg", members, 2);
  troupe_phase_enter(TROUPE_USER, "sampling");
  troupe_phase_leave(TROUPE_USER);
  troupe_collective_enter(world, TROUPE_ALL_REDUCE, 4096);
  troupe_collective_leave(world);
  troupe_touch();
  troupe_step(41);
  troupe_next_step();
  return world;
}
