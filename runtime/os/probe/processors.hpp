#pragma once

#include "probe/devices.hpp"

namespace troupe::os {

/// This machine's processors, as the one device of a node without accelerators.
///
/// One thread makes the products: how many processors this node has is known without measuring, and
/// those that do something else at this moment would be measured along. A node that is slow because
/// it is throttled, or shares its cores with other virtual machines, is slow on each of them.
class processors final : public probe::device_port {
 public:
  bool has_accelerators() const override { return false; }
  result<std::vector<probe::device_facts>> list() override;
  result<probe::computed> compute(std::uint32_t index) override;
  result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) override;
  result<std::uint32_t> channels(std::uint32_t first, std::uint32_t second) override;
  std::string collectives() override { return {}; }
  result<std::string> make_group_key() override;
  result<std::unique_ptr<probe::device_group>> join_group(const std::string& key,
                                                          const probe::group_place& place) override;
};

} // namespace troupe::os
