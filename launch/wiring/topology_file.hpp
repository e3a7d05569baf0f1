#pragma once

#include "actors/master/recovery/topology_source.hpp"
#include "launch/options/topology.hpp"
#include "runtime/base/log.hpp"
#include "topology/read_topology.hpp"

#include <memory>
#include <string>

namespace troupe::launch {

/// Once, as the file is now. `unavailable`: it is not there, or not complete.
result<topology::topology_read> read_topology_file(const topology_settings& from);

/// The file of --topology, for the planner.
///
/// It may be written by a controller while the job starts, and its disk may be a network's. So it
/// is read by a thread of its own, again and again until it is complete or its time is over. A look
/// twice a second costs nothing, and sees a file of any file system, and a ConfigMap, whose links
/// are replaced. A file that is wrong in the same way at two looks is wrong.
class topology_file : public actors::topology_source {
 public:
  /// Null: no file was named.
  static std::shared_ptr<actors::topology_source> of(const topology_settings& from,
                                                     const log::sink& log);

  topology_file(topology_settings from, log::sink log);
  /// Waits for no thread: one may hang at a disk for ever. It says nothing any more.
  ~topology_file() override;
  topology_file(const topology_file&) = delete;
  topology_file& operator=(const topology_file&) = delete;

  void read(std::function<void(const actors::topology_answer&)> done) override;

 private:
  struct shared;
  std::shared_ptr<shared> shared_;
};

} // namespace troupe::launch
