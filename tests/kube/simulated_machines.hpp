#pragma once

#include "kube/api.hpp"

#include <boost/json/array.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// As much of an API server as marks need: pods by their address, and machines whose changes are
/// JSON patches. It does what a real one does with them (`tests/kubernetes` compares).
namespace troupe::testing {

class simulated_machines {
 public:
  struct pod {
    std::string address, machine, phase = "Running", started = "2026-01-01T00:00:00Z", name;
  };
  struct machine {
    boost::json::value taints; ///< null: the object has no list
    bool unschedulable = false;
    std::uint64_t version = 1;
  };

  std::vector<pod> pods;
  std::map<std::string, machine> machines;
  unsigned failed_test = 422; ///< how a patch's failed test is answered
  std::vector<kube::api_request> asked;

  kube::api_answer answer(const kube::api_request& r);

 private:
  kube::api_answer change(machine& m, const std::string& body) const;
};

} // namespace troupe::testing
