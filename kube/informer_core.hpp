#pragma once

#include "kube/watch_core.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// Follows all ElasticJobs and the pods that belong to them, has a job started for each, and tells
/// each what is its own.
///
/// Of the newest state of everything it keeps what a job needs to know, so that one that begins
/// anew is told all of it. A route is the name of a job's actor: "namespace.label.uid", by the
/// label that the job's pods have and the identity of their owner. So pods that a deleted job has
/// left are none of the job that is made under its name, and the actors of both may be there at
/// once.
class informer_core {
 public:
  struct options {
    std::string name_space; ///< empty: all
    std::uint64_t seed = 0;
  };
  /// Two watches have numbers of their own each: `of` tells them apart.
  struct call {
    std::size_t of = 0;
    std::uint64_t number = 0;
    api_request what;
  };
  struct open {
    std::size_t of = 0;
    std::uint64_t number = 0;
    api_request what;
  };
  struct cut {
    std::size_t of = 0;
    std::uint64_t number = 0;
  };
  struct begin_job {
    std::string route;
  };
  struct end_job {
    std::string route;
  };
  struct tell_job {
    std::string route, json;
  };
  struct tell_pod {
    std::string route, json;
  };
  struct tell_gone {
    std::string route, uid;
  };
  struct tell_all_told {
    std::string route;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<call, open, cut, begin_job, end_job, tell_job, tell_pod, tell_gone,
                              tell_all_told, note>;
  using effects = std::vector<effect>;

  explicit informer_core(const options& o);

  /// The operator leads.
  effects start(instant now);
  effects answered(instant now, std::size_t of, std::uint64_t number, const api_answer& a);
  effects line(instant now, std::size_t of, std::uint64_t number, const std::string& text);
  effects closed(instant now, std::size_t of, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  /// A job's actor has begun, for the first time or anew.
  effects job_begins(const std::string& route);
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  struct known_pod {
    std::string route, json;
  };
  struct known_job {
    std::string key, json;
    std::set<std::string> pods; ///< by uid
  };

  void take(effects& out, std::size_t of, watch_core::effects&& from);
  void take_job(effects& out, const boost::json::value& object);
  void take_pod(effects& out, const boost::json::value& object);
  void job_gone(effects& out, const std::string& key);
  void pod_gone(effects& out, const std::string& uid);

  std::array<watch_core, 2> watches_;
  bool started_ = false;
  std::array<bool, 2> told_{};
  std::map<std::string, known_job> jobs_;     ///< by route
  std::map<std::string, std::string> routes_; ///< by key of the ElasticJob
  std::map<std::string, known_pod> pods_;     ///< by uid
};

/// Of a pod what a job's actor reads.
boost::json::object slim_pod(const boost::json::value& pod);

} // namespace troupe::kube
