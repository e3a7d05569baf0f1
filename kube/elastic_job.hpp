#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::kube {

/// How many nodes a world may have.
struct node_range {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  bool operator==(const node_range& o) const { return min == o.min && max == o.max; }
};

/// What an ElasticJob (elastic.iml.github.io/v1alpha1, DLRover's) says of a job.
struct elastic_job {
  std::string name, name_space, uid;
  std::string version;         ///< resourceVersion
  std::int64_t generation = 0; ///< of the spec
  bool is_suspended = false;
  bool is_being_deleted = false;
  std::vector<std::string> finalizers;

  /// MAX is the number of workers' replicas. MIN is what the annotation troupe/nnodes says, else
  /// --nnodes in the containers' command, else 1, as DLRover's users write `--nnodes 1:N`.
  node_range nodes;
  boost::json::object pod_template;          ///< of the workers, as it is
  std::uint32_t restarts = 3;                ///< of each worker's pod
  std::vector<std::string> master_arguments; ///< annotation troupe/master-args
  std::string memory_max; ///< annotation troupe/memory-max: what out of memory may raise it to
  std::optional<std::chrono::seconds> keep_for; ///< troupe/ttl-seconds-after-finished

  std::string phase; ///< as its status says; empty: it has none yet
  /// What is taken otherwise than it is written; a line each, for people.
  std::vector<std::string> remarks;
};

inline constexpr auto elastic_job_group = "elastic.iml.github.io/v1alpha1";

/// Errors: `invalid`, with the field and what is wrong with it. Name and deletion can be read of
/// each, see `elastic_job_identity`.
result<elastic_job> read_elastic_job(const boost::json::value& object);

/// Without the spec: what can be said of one that is not valid, too.
elastic_job elastic_job_identity(const boost::json::value& object);

/// "MIN:MAX" or "N". Nothing: it is neither.
std::optional<node_range> read_node_range(const std::string& text);

/// A name of something that belongs to a job: PREFIX-JOB-SUFFIX (empty parts left out), of at most
/// `limit` bytes and without dots, as services and labels need it. One that has to be changed for
/// that ends with a number made of the whole, so that two jobs have two names.
std::string name_of_part(const std::string& prefix, const std::string& job,
                         const std::string& suffix, std::size_t limit = 63);

} // namespace troupe::kube
