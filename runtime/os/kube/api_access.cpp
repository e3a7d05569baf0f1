#include "runtime/os/kube/api_access.hpp"

#include "runtime/os/contents_of.hpp"

#include <fmt/format.h>

#include <charconv>

#include <unistd.h>

namespace troupe::os {

namespace {

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

} // namespace

result<api_access> access_in_cluster(const std::map<std::string, std::string>& environment,
                                     const std::string& directory) {
  const auto host = value_of(environment, "KUBERNETES_SERVICE_HOST");
  const auto port_text = value_of(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port_text.empty())
    return failure(errc::unavailable,
                   "this is no pod of Kubernetes (KUBERNETES_SERVICE_HOST and "
                   "KUBERNETES_SERVICE_PORT are not set): elsewhere --kubeconfig FILE says where "
                   "the API server is");
  std::uint16_t port = 0;
  const auto* end = port_text.data() + port_text.size();
  if (const auto read = std::from_chars(port_text.data(), end, port);
      read.ec != std::errc() || read.ptr != end || port == 0)
    return failure(errc::unavailable,
                   fmt::format("KUBERNETES_SERVICE_PORT is '{}', which is no port", port_text));
  api_access a;
  a.server = {host, port};
  a.token_file = directory + "/token";
  const auto authority = directory + "/ca.crt";
  a.source = fmt::format("'{}'", authority);
  for (const auto& file : {authority, a.token_file})
    if (::access(file.c_str(), R_OK) != 0)
      return failure(errc::unavailable,
                     fmt::format("'{}' cannot be read: the pod has no service account "
                                 "(automountServiceAccountToken)",
                                 file));
  a.authority = contents_of(authority);
  a.name_space = contents_of(directory + "/namespace");
  constexpr std::size_t name_max = 63; // RFC 1123
  if (a.name_space.empty() || a.name_space.size() > name_max)
    return failure(errc::unavailable,
                   fmt::format("'{}/namespace' does not say the pod's namespace", directory));
  return a;
}

} // namespace troupe::os
