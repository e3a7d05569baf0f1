#include "runtime/link/hello.hpp"

#include "runtime/link/role_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::link {

result<void> check_names(const std::vector<std::string>& proven, messages::Hello::Reader hello) {
  const auto carries = [&proven](const std::string& name) {
    return std::find(proven.begin(), proven.end(), name) != proven.end();
  };
  const auto names =
      proven.empty() ? std::string("no name at all") : fmt::format("{}", fmt::join(proven, ", "));
  if (hello.getRole() == messages::Hello::Role::SHELL) {
    const bool changes = hello.getChangesJob();
    if (carries(admin_name) || (!changes && carries(shell_name)))
      return {};
    return failure(errc::refused,
                   fmt::format("the certificate is for {}, and only one that carries the name {} "
                               "may {} the job",
                               names, changes ? admin_name : shell_name,
                               changes ? "change" : "look at"));
  }
  const std::string node = hello.getNode().cStr();
  // The master probes the network to its nodes.
  if (node == master_name && hello.getRole() == messages::Hello::Role::PEER &&
      hello.getPurpose() == messages::Hello::Purpose::PROBE && carries(master_name))
    return {};
  if (node == master_name || node == shell_name || node == admin_name)
    return failure(errc::refused,
                   fmt::format("\"{}\" is the name of a role and of no node (--node-name)", node));
  if (carries(node))
    return {};
  return failure(
      errc::refused,
      fmt::format("the certificate is for {}, not for a node named \"{}\"", names, node));
}

messages::msg<messages::Hello> with_address(const messages::msg<messages::Hello>& hello,
                                            const std::string& address) {
  if (hello.read()->getAddress().size() > 0)
    return hello;
  return messages::altered(
      hello, hello.envelope(), [&](messages::Hello::Builder out) { out.setAddress(address); },
      address.size() / sizeof(capnp::word) + 1);
}

} // namespace troupe::link
