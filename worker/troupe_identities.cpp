#include "worker/troupe_ckpt.h"

#include <new>
#include <vector>

namespace {

/// Which number of one list stands for which of the other.
class counterparts {
 public:
  /// Room for so many, at most half full.
  explicit counterparts(size_t most) {
    size_t size = 16;
    while (size < 2 * most)
      size *= 2;
    entries_.resize(size);
  }
  /// False: `number` stands for another one already.
  bool stands_for(uint64_t number, uint64_t other) {
    auto at = hash(number) & (entries_.size() - 1);
    while (entries_[at].taken && entries_[at].number != number)
      at = (at + 1) & (entries_.size() - 1);
    auto& e = entries_[at];
    if (!e.taken)
      e = {number, other, true};
    return e.other == other;
  }

 private:
  struct entry {
    uint64_t number = 0, other = 0;
    bool taken = false;
  };
  /// Addresses: their low bits are all alike.
  static size_t hash(uint64_t number) {
    return static_cast<size_t>((number * 0x9e37'79b9'7f4a'7c15u) >> 24);
  }

  std::vector<entry> entries_;
};

} // namespace

int troupe_same_pattern(const uint64_t* some, const uint64_t* others, size_t count,
                        const uint64_t* known, size_t known_count) {
  try {
    counterparts there(count + known_count), back(count + known_count);
    const auto match = [&](uint64_t one, uint64_t other) {
      return there.stands_for(one, other) && back.stands_for(other, one);
    };
    for (size_t i = 0; i < known_count; ++i)
      match(known[i], known[i]);
    for (size_t i = 0; i < count; ++i)
      if (!match(some[i], others[i]))
        return 0;
    return 1;
  } catch (const std::bad_alloc&) {
    return 0; // as if they were not: more is done then, and nothing wrong
  }
}
