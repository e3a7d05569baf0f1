#pragma once

#include "probe/probe_host.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/process/bounded_child.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::os {

/// The real probe_host: `troupe-probe` as a child, which is killed when its time is over. It gets
/// what is wanted on its standard input, one message, and leaves its report on its standard output:
/// one message, before which comes the key of a group if it has made one. Whatever else happens to
/// it becomes a report that the node's devices fail.
class child_probe_host final : public probe::probe_host {
 public:
  /// `own_program`: the file of `troupe`. `node`: this node's name.
  static std::shared_ptr<child_probe_host> open(std::string own_program, std::string node);
  /// Ends the probe that is under way, whose `done` is called before this returns; those that have
  /// not begun are dropped.
  ~child_probe_host() override;

  void probe_node(const messages::msg<messages::NodeProbeWanted>& wanted, probed done) override;
  void probe_group(const messages::msg<messages::DevicesProbeWanted>& wanted, key_made made,
                   group_probed done) override;
  void end_probe() override;

 private:
  class run;
  using work = std::function<void(const run&)>;
  child_probe_host(std::string own_program, std::string node);

  /// In place of what is under way.
  void begin(work next);
  child_task task_for(const messages::any_msg& wanted, std::uint64_t within_ms,
                      const run& current) const;
  messages::msg<messages::NodeProbed>
  report_of(const messages::msg<messages::NodeProbeWanted>& wanted, const run& current) const;
  messages::msg<messages::GroupProbed>
  report_of(const messages::msg<messages::DevicesProbeWanted>& wanted, const key_made& made,
            const run& current) const;

  const std::string program_, node_;
  std::mutex mutex_;
  std::shared_ptr<run> current_;    ///< the last that was asked for
  std::optional<io_thread> thread_; ///< most nodes are never probed
};

} // namespace troupe::os
