#pragma once

#include "ckpt/load/load_plan.hpp"
#include "tests/sim/checkpoints.hpp"
#include "tests/sim/fiber.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace troupe::sim {

/// What all ranks of a generation do before they train, as python/troupe/checkpoint/recovery.py
/// does it: each looks at its memory and its directory, all tell each other what they see, plan
/// alike (ckpt/load) and carry it out, until all have the state in memory.
class loads {
 public:
  explicit loads(checkpoints& of) : all_(of) {}
  ~loads();

  /// A new generation has its ranks together.
  void begin(generation which);

 private:
  struct rank;
  struct load;
  using load_ptr = std::shared_ptr<load>;

  void look(const load_ptr& of);
  void see_memory(const load& of, rank& r);
  void see_disk(const load& of, rank& r);
  void plan(const load_ptr& of);
  void carry_out(const load_ptr& of, const ckpt::load_plan& plan);
  void take_from_peer(load& of, rank& r, const ckpt::load_plan& plan);
  /// Of that rank's part; nothing if the node has it no more.
  std::optional<std::size_t> slot_with(const rank& at, const ckpt::state_id& what,
                                       global_rank part) const;
  void set_sent(const load& of, const ckpt::load_plan& plan, bool begins);
  void rebuild(load& of, rank& r, const ckpt::load_plan& plan);
  result<std::string> summed(const load& of, const ckpt::rebuilt_snapshot& lost,
                             const ckpt::load_plan& plan);
  result<std::string> memory_of_source(const load& of, const ckpt::transfer& t,
                                       const ckpt::state_id& what);
  void keep(rank& r, const ckpt::slot_snapshot& what);
  void read(load& of, rank& r, const ckpt::state_id& what);
  void end(const load_ptr& of, const ckpt::load_plan& plan);
  void begin_run(const load& of, rank& r, const load_outcome& what);
  /// Does it for every rank in a thread of its own, and then something once.
  void at_all(const load_ptr& of, const std::function<void(rank&)>& what,
              std::function<void()> then);
  bool goes_on(const load& of) const;

  checkpoints& all_;
  std::map<generation, load_ptr> under_way_;
};

} // namespace troupe::sim
