#pragma once

#include "kube/api.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// As much of an API server as a journal in a ConfigMap needs: get, create, and update of the
/// version that was read. It does what a real one does with them (`tests/kubernetes` compares).
namespace troupe::testing {

class simulated_config_maps {
 public:
  std::map<std::string, boost::json::object> objects; ///< of namespace "jobs"
  std::vector<kube::api_request> asked;

  kube::api_answer answer(const kube::api_request& r);

  /// Something else has changed it: the next update of the version before is a conflict.
  void touch(boost::json::object& object);

 private:
  kube::api_answer create(boost::json::object object);
  kube::api_answer update(const std::string& name, boost::json::object object);

  std::uint64_t version_ = 0;
};

/// An error as the server words it.
kube::api_answer refused_with(unsigned status, const std::string& message);

} // namespace troupe::testing
