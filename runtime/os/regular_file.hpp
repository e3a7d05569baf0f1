#pragma once

#include <sys/stat.h>

namespace troupe::os {

/// Whether what is written there goes to a disk, which takes it in the end, however long it is busy
/// with others. The reader of a pipe or a terminal may have stopped for good.
inline bool is_regular_file(int descriptor) {
  struct stat found {};
  return ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
}

} // namespace troupe::os
