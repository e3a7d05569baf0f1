// Fails on purpose, behind two comparisons that chance alone would hardly pass: if this target does
// not fail soon, the fuzzer does not see what the code does, and the silence of the other targets
// means nothing.
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size >= 16 && std::memcmp(bytes, "find", 4) == 0 && std::memcmp(bytes + 12, "this", 4) == 0)
    std::abort();
  return 0;
}
