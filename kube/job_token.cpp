#include "kube/job_token.hpp"

#include "kube/job_objects.hpp"
#include "kube/limits.hpp"
#include "kube/objects.hpp"

namespace troupe::kube {

job_token::job_token() : again_(limits::job_again_first, limits::job_again_most) {}

api_request job_token::next(const elastic_job& job, const std::string& token) const {
  switch (step_) {
  case step::look:
    return look_at_token(job);
  case step::remove:
    return remove_token(job, namesakes_);
  case step::make:
  case step::there:
    break;
  }
  return create_token(job, token);
}

std::optional<duration> job_token::answered(const elastic_job& job, const api_answer& a) {
  const bool is_well = a.status >= 200 && a.status < 300;
  const auto go_on = [this](step to) {
    step_ = to;
    return duration::zero();
  };
  if (step_ == step::make) {
    if (is_well)
      return go_on(step::there);
    return a.status == 409 ? std::optional(go_on(step::look)) : std::nullopt;
  }
  // Gone meanwhile, or another has come in its place.
  if (a.status == 404 || (step_ == step::remove && a.status == 409))
    return go_on(step::make);
  if (!is_well)
    return std::nullopt;
  if (step_ == step::remove) {
    step_ = step::make;
    return again_.next();
  }
  const auto secret = parsed(a.body);
  if (!secret || !is_of_a_namesake(*secret, job))
    return go_on(step::there);
  namesakes_ = text(*secret, {"metadata", "uid"});
  return go_on(step::remove);
}

} // namespace troupe::kube
