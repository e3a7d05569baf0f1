#pragma once

#include "tests/sim/checkpoints.hpp"
#include "tests/sim/fiber.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::sim {

/// What all ranks of a generation do before they train: each looks at its memory and its directory,
/// all tell each other what they see, plan alike (ckpt/load), and carry it out. What cannot be read
/// is tried no second time, and the directories are looked at anew.
class loads {
 public:
  explicit loads(checkpoints& of) : all_(of) {}
  ~loads();

  /// A new generation has its ranks together.
  void begin(generation which);

 private:
  struct rank;
  struct load;

  void look(const std::shared_ptr<load>& of);
  void plan(const std::shared_ptr<load>& of);
  void read(const std::shared_ptr<load>& of);
  void end(const std::shared_ptr<load>& of, bool found);
  bool goes_on(const load& of) const;
  void on_fiber(rank& r, std::function<void()> what);

  checkpoints& all_;
  std::shared_ptr<load> current_;
};

} // namespace troupe::sim
