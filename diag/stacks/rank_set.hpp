#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Which ranks stand somewhere. Of ten thousand ranks nearly all stand in the same place, so a set
/// is kept as runs of neighbours: mostly one.
namespace troupe::diag {

class rank_set {
 public:
  struct run {
    std::uint32_t first = 0, last = 0;
    friend bool operator==(const run& a, const run& b) {
      return a.first == b.first && a.last == b.last;
    }
  };

  /// 0 up to `size`, without it.
  static rank_set below(std::uint32_t size);

  void add(std::uint32_t rank) {
    if (!runs_.empty() && rank >= runs_.back().first) {
      auto& newest = runs_.back();
      if (rank <= newest.last)
        return;
      if (rank == newest.last + 1) {
        newest.last = rank;
        return;
      }
    }
    add_elsewhere(rank);
  }
  /// Behind all that are in it, with a gap; answers false, and changes nothing, if it is not.
  bool append(run next);
  void add(const rank_set& others);

  bool has(std::uint32_t rank) const;
  bool empty() const { return runs_.empty(); }
  std::size_t size() const;
  /// Ascending, with a gap between each two.
  const std::vector<run>& runs() const { return runs_; }
  /// Those of `all` that are not in it.
  rank_set missing_of(const rank_set& all) const;
  /// As xpu_timer folds them: "0-3/7/9-10"; empty if there are none. Behind that many runs, "/...".
  std::string text(std::size_t runs_max = 0xffff'ffff) const;

  friend bool operator==(const rank_set& a, const rank_set& b) { return a.runs_ == b.runs_; }

 private:
  void add_elsewhere(std::uint32_t rank);

  std::vector<run> runs_;
};

} // namespace troupe::diag
