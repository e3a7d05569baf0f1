#pragma once

#include "kube/api.hpp"
#include "kube/elastic_job.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::kube {

/// The Secret with a job's token, which is there before the master's pod is made.
///
///     make → (made)                         → there
///          → (409) look → (the job's own)   → there
///                       → (404)             → make
///                       → (a namesake's)    → remove → make
///
/// A token that people or another controller have put there is the job's own. One that a deleted
/// job of the same name has left is about to be collected with its owner: the master's pod would
/// wait for it for ever, and the deleted job's pods would be let into this one.
class job_token {
 public:
  job_token();

  bool is_there() const { return step_ == step::there; }
  /// What was there may have been collected since.
  void look_again() {
    if (is_there())
      step_ = step::make;
  }
  /// Unless it is there.
  api_request next(const elastic_job& job, const std::string& token) const;
  /// What came of that. Nothing: it was refused, and is to be asked again later; else how long to
  /// rest before what is next.
  std::optional<duration> answered(const elastic_job& job, const api_answer& a);

 private:
  enum class step : std::uint8_t { make, look, remove, there };

  step step_ = step::make;
  std::string namesakes_; ///< uid of the Secret to be removed
  back_off again_;
};

} // namespace troupe::kube
