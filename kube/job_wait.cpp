#include "kube/job_wait.hpp"

#include "kube/job_status.hpp"
#include "kube/objects.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::kube {

namespace {

constexpr unsigned status_found = 200, status_not_found = 404;

/// Of the job itself: a server that starts, or has just been told what an ElasticJob is, answers
/// 404 to all of them.
bool is_not_there(const api_answer& a, const std::string& name) {
  const auto status = a.status == status_not_found ? parsed(a.body) : std::nullopt;
  return status && text(*status, {"reason"}) == "NotFound" &&
         text(*status, {"details", "name"}) == name;
}

} // namespace

job_wait::job_wait(std::string name_space, std::string name, instant until)
    : name_space_(std::move(name_space)), name_(std::move(name)), until_(until) {}

api_request job_wait::request() const {
  return {"GET",
          fmt::format("/apis/{}/namespaces/{}/elasticjobs/{}", elastic_job_group,
                      escaped(name_space_), escaped(name_)),
          "", ""};
}

job_wait::heard job_wait::answered(instant now, const api_answer& a) {
  heard out;
  const auto job = a.status == status_found ? parsed(a.body) : std::nullopt;
  if (job)
    out = of_job(*job);
  else if (is_not_there(a, name_))
    out.over = failure(errc::absent, called() + (uid_.empty() ? ": there is no such job"
                                                              : " was deleted before its end"));
  else
    last_ = a.status == status_found ? "the API server answers with no JSON" : in_words(a);
  if (!out.over && now >= until_)
    out.over = tl::make_unexpected(late());
  return out;
}

error job_wait::late() const {
  return {errc::unavailable,
          called() + " is not over in time: " + (last_.empty() ? "nothing was answered" : last_)};
}

job_wait::heard job_wait::of_job(const boost::json::value& job) {
  heard out;
  const auto uid = text(job, {"metadata", "uid"});
  if (!uid_.empty() && uid != uid_) {
    out.over = failure(errc::absent, called() + " was deleted before its end, and another job has "
                                                "its name");
    return out;
  }
  uid_ = uid;
  job_status status;
  status.take_up(job);
  const auto& phase = status.phase();
  const auto trouble = status.told_trouble();
  auto why = trouble.empty() ? status.told_reason() : trouble;
  why = why.empty() ? "no reason is told" : why;
  last_ = phase.empty() ? "no operator has told its state; does one run, and does it see this "
                          "namespace?"
                        : "it is " + phase + ": " + why;
  if (phase != phase_ && !phase.empty())
    out.note = {log::level::notice,
                "job_awaited",
                fmt::format("{} is {}", called(), phase),
                {{"job", name_}, {"namespace", name_space_}, {"phase", phase}}};
  phase_ = phase;
  if (phase == "Succeeded")
    out.over = result<void>();
  else if (phase == "Failed")
    out.over = failure(errc::invalid, called() + " has failed: " + why);
  return out;
}

} // namespace troupe::kube
