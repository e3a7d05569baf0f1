#pragma once

#include "runtime/ports/bulk_links.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::testing {

/// Nodes of a job and the bulk links between them, in a test's hands: what one does on its links
/// waits until the test lets it get to the other, one thing after the other, in the order in which
/// it was done. Links have no credit. For one thread.
class fake_bulk_network {
 public:
  fake_bulk_network();
  ~fake_bulk_network();

  /// The same for the same name. Others dial it at {name, port}.
  static constexpr std::uint16_t port = 29'402;
  std::shared_ptr<ports::bulk_links> node(const std::string& name);

  /// The next thing happens: a dial is answered, a message arrives, an end is heard. False: nothing
  /// waits.
  bool step();
  /// Until nothing waits. What a test does not expect to come to rest it must step through.
  void settle() {
    while (step()) {
    }
  }
  std::size_t waiting() const;

  /// From now on no node dials this one (`unavailable`), nor does it dial; its links break, both
  /// ends hear of it.
  void cut(const std::string& name);
  void mend(const std::string& name);
  /// What this node may send in a second; 0, as at first: no bound.
  void set_rate(const std::string& name, std::uint64_t bytes_per_second);
  /// Messages that have arrived anywhere.
  std::size_t delivered() const;

 private:
  struct parts;
  const std::shared_ptr<parts> parts_;
};

} // namespace troupe::testing
