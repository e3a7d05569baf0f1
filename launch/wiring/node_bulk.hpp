#pragma once

#include "launch/options/options.hpp"
#include "runtime/os/bulk/bulk_exchange.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/ports/keeping.hpp"

#include <memory>

namespace troupe::launch {

/// What moves many bytes between this node and the others of its job, on a thread of its own: so
/// many bytes are not to delay a sign of life.
class node_bulk {
 public:
  /// Where others dial this node: they have been told, so a successor listens there again.
  static constexpr ports::kept_slot<messages::CopiesPlace> place_slot{3};

  /// `master`, as this node dials it, tells from where other nodes come. The error says why they
  /// cannot.
  static result<std::unique_ptr<node_bulk>> open(const launcher_options& o, const node_name& node,
                                                 const ports::endpoint& master,
                                                 ports::keeping& kept, const log::sink& sink);

  /// Must not be used after this has gone.
  const std::shared_ptr<os::bulk_exchange>& links() const { return links_; }

 private:
  node_bulk() = default;

  // In this order: links end before the thread does.
  os::io_thread io_{"troupe-bulk"};
  std::shared_ptr<os::bulk_exchange> links_;
};

} // namespace troupe::launch
