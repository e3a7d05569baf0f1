#include "ckpt/catalog/newest_generation.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <string>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "troupe-saver";

/// The only shard of a step is all of it.
ckpt::commit_order order_for(const ckpt::persist_request& snapshot, const ports::receipt& written,
                             const node_name& node) {
  ckpt::commit_order order;
  order.to = snapshot.to;
  order.says.step = snapshot.step;
  order.says.made_by = snapshot.made_by;
  order.says.save = snapshot.save;
  order.says.world_size = snapshot.world_size;
  order.says.layout = ckpt::layout_of(snapshot.to.whose);
  order.says.shards = {{snapshot.to.file, written, node}};
  return order;
}

/// What actor-launcher's persister and catalog do for a whole job, for one process.
class private_saver {
 public:
  private_saver(std::shared_ptr<ckpt::snapshot_writer> writer, node_name node)
      : writer_(std::move(writer)), node_(std::move(node)) {}

  void take(const ckpt::persist_request& snapshot) {
    ++open_;
    if (snapshot.to.shards != 1)
      return finalize(
          snapshot,
          failure(errc::refused, fmt::format("step {} has {} shards: only actor-launcher knows "
                                             "when all of them are written",
                                             snapshot.step, snapshot.to.shards)));
    writer_->write(snapshot, [this, snapshot](const result<ports::receipt>& written) {
      if (!written)
        return finalize(snapshot, tl::make_unexpected(written.error()));
      writer_->commit(order_for(snapshot, *written, node_),
                      [this, snapshot](const result<ckpt::completed>& how) {
                        for (const auto& warning : how ? how->warnings : none)
                          report_error(program, warning, exit_failure);
                        // Saves are written in their order, so none before it is open.
                        if (how)
                          writer_->retain({snapshot.to, {snapshot.id(), snapshot.id()}});
                        finalize(snapshot, how ? result<void>{} : tl::make_unexpected(how.error()));
                      });
    });
  }

  /// Until everything that is requested by now is finalized, and the memory says so.
  void drain() {
    look();
    {
      std::unique_lock held(lock_);
      changed_.wait(held, [this] { return open_ == 0; });
    }
    look();
  }

 private:
  /// Of a place that a newer run has taken each save is lost.
  bool is_told(const std::string& place, const std::string& why) {
    const std::lock_guard held(lock_);
    return why.find(ckpt::refused_for_newer) != why.npos && !taken_places_.insert(place).second;
  }

  void look() {
    std::promise<void> looked;
    writer_->look([&] { looked.set_value(); });
    looked.get_future().wait();
  }
  void finalize(const ckpt::persist_request& snapshot, const result<void>& how) {
    if (!how && !is_told(snapshot.to.place, how.error().what))
      report_error(
          program,
          fmt::format("step {} of rank {}: {}", snapshot.step, snapshot.rank, how.error().what),
          exit_failure);
    writer_->finalize(snapshot, how);
    const std::lock_guard held(lock_);
    --open_;
    changed_.notify_all();
  }

  const std::vector<std::string> none;
  std::shared_ptr<ckpt::snapshot_writer> writer_;
  node_name node_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::set<std::string> taken_places_;
  std::atomic<std::size_t> open_{0}; ///< requested and not finalized
};

void wait_for_end_of_input() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

/// "3,4,5", as many as an arena has; nothing for any other text.
std::optional<std::vector<int>> descriptors_of(std::string_view text) {
  std::vector<int> found;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
    const auto [end, wrong] = std::from_chars(at, text.data() + text.size(), found.emplace_back());
    if (wrong != std::errc())
      return std::nullopt;
    at = end;
  }
  return found.size() == ckpt::arena_descriptors ? std::optional(found) : std::nullopt;
}

} // namespace

/// Writes out what one process, which no launcher started, wants written. Started by
/// troupe.checkpoint; ends after its standard input has ended and all is written.
int troupe::launch::troupe_saver(int argc, char** argv) {
  prepare_process(program);
  const auto descriptors = argc == 2 ? descriptors_of(argv[1]) : std::nullopt;
  if (!descriptors)
    return report_error(
        program,
        "troupe.checkpoint starts this program, for processes that actor-launcher did "
        "not start; it takes the descriptors of their memory for images",
        exit_failure);
  const auto node = host_name();
  const auto memory = ckpt::snapshot_watch::open({*descriptors});
  if (!memory)
    return report_error(program, memory.error().what, exit_failure);
  const auto writer = std::make_shared<ckpt::snapshot_writer>(*memory, node);
  private_saver saver(writer, node);
  writer->watch([&](const ckpt::persist_request& snapshot) { saver.take(snapshot); });
  wait_for_end_of_input();
  saver.drain();
  return exit_success;
}
