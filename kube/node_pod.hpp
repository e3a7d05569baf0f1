#pragma once

#include "kube/api.hpp"
#include "kube/avoided_machines.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The pod of one node of a job: how it is made of the job's template, and what is read of it.
namespace troupe::kube {

/// Of the pod that replaces another: how often that was so for this rank.
inline constexpr auto relaunch_label = "elasticjob.dlrover/relaunch-count";
/// How many of these counted against the budget of the rank's restarts.
inline constexpr auto restarts_annotation = "troupe/restarts";

/// The pod goes not to machines of lost nodes, which may be good again by the time it is placed.
inline constexpr auto avoids_annotation = "troupe/avoids-machines-of-lost-nodes";

/// Of a job, for all pods of its nodes.
struct node_pods_job {
  std::string name_space;
  std::string name; ///< of the ElasticJob
  std::string uid;
  std::string master_address; ///< host:port
  std::string token_secret;   ///< name of the Secret whose key "token" has the job's token
};

/// What one pod differs in.
struct node_pod_part {
  std::uint32_t rank = 0;
  std::uint64_t id = 0; ///< grows with each pod of the job
  std::uint32_t nodes = 1;
  std::uint32_t relaunches = 0;
  std::uint32_t restarts = 0;
  /// Bytes that containers need at least, by their names: they were out of memory before.
  std::map<std::string, std::uint64_t> memory;
  avoided_machines::list avoided;
};

std::string node_pod_name(const std::string& job, std::uint64_t id);

/// POST of the pod. The template goes through as it is but for what makes it the pod of a node: its
/// owner, labels, the policy never to restart, variables that no container has yet, and machines
/// that it avoids.
api_request create_node_pod(const node_pods_job& job, const boost::json::value& pod_template,
                            const node_pod_part& part);

/// "16Gi", "1.5G", "129e6", "1000" in bytes. Nothing: it is no quantity.
/// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
std::optional<std::uint64_t> bytes_of_quantity(const std::string& text);

/// Half as much again, `most` at the most; what is above that already stays.
std::uint64_t raised_memory(std::uint64_t bytes, std::uint64_t most);

enum class pod_phase : std::uint8_t { pending, running, ended };

/// Why a pod ended, as far as that decides what follows.
enum class pod_end : std::uint8_t {
  done,          ///< 0
  taken,         ///< by the cluster: deleted, evicted, preempted, its machine lost
  out_of_memory, ///< a container's limit
  wrong_usage,   ///< the command line is wrong, and is so the next time
  hardware,      ///< of the machine
  failed
};

/// A container that was out of memory, and what it had: by its limit, else its request; 0: neither.
struct memory_spent {
  std::string container;
  std::uint64_t bytes = 0;
};

struct node_pod {
  std::string key, name, uid;
  std::string owner;   ///< uid of its controller
  std::string created; ///< RFC 3339 in UTC, which sorts as text
  std::string role;    ///< "worker"
  std::optional<std::uint32_t> rank;
  std::uint64_t id = 0;
  std::uint32_t relaunches = 0;
  std::uint32_t restarts = 0;
  pod_phase phase = pod_phase::pending;
  bool is_terminating = false;
  std::string machine;
  bool avoids_for_a_while = false; ///< machines of lost nodes
  std::vector<std::string> addresses;

  pod_end end = pod_end::failed; ///< if it has ended
  std::string end_in_words;
  std::vector<memory_spent> out_of_memory;

  std::string waits_for;          ///< one word; empty: nothing is told
  std::string waits_for_in_words; ///< for people, one line
  bool waits_for_image = false;
};

/// The memory of a container by its requests or its limits; nothing: it has none, or it is odd.
std::optional<std::uint64_t> memory_of(const boost::json::value& container, const char* kind);

/// Whatever is missing in it or odd.
node_pod read_node_pod(const boost::json::value& object);

} // namespace troupe::kube
