#include "launch/options/version.hpp"

// Its build has TROUPE_VERSION and TROUPE_COMMIT from cmake/version.cmake.
namespace troupe::launch {

std::string version_text() {
  const std::string commit = TROUPE_COMMIT;
  return "troupe " + version_number() + (commit.empty() ? "" : " (" + commit + ")") + "\n";
}

std::string version_number() {
  return TROUPE_VERSION;
}

} // namespace troupe::launch
