#pragma once

#include "kube/api.hpp"
#include "kube/elastic_job.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <optional>
#include <string>

namespace troupe::kube {

/// Waits until a job is over, for one that asks for it again and again.
///
/// A job that is not there ends the wait, and so does another that has come under the name: its end
/// would not be the end of the one that was waited for. Anything else that is answered may pass, as
/// a right that is given late, and is told if it has not passed when the limit is over.
class job_wait {
 public:
  struct heard {
    std::optional<log::event> note;   ///< the job's phase is another one
    std::optional<result<void>> over; ///< nothing: it has to be asked for again
  };

  job_wait(std::string name_space, std::string name, instant until);

  /// Each time the same.
  api_request request() const;
  /// The error of a wait that is over says why the job has not succeeded: `invalid` if it has
  /// failed, `absent` if it is gone, `unavailable` if it is not over in time.
  heard answered(instant now, const api_answer& a);
  /// For the end of a wait to which nothing is answered.
  error late() const;
  instant until() const { return until_; }

 private:
  heard of_job(const boost::json::value& job);
  std::string called() const { return "ElasticJob " + name_space_ + "/" + name_; }

  std::string name_space_, name_;
  instant until_;
  std::string uid_;   ///< of the job that is waited for; empty: it was not seen yet
  std::string phase_; ///< the last that was told
  std::string last_;  ///< why the job is not over, by the last answer
};

} // namespace troupe::kube
