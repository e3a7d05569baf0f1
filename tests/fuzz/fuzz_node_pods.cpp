// What an API server and its watch may tell about the pods of a job's nodes: pods in any state, of
// any rank and name, under any identity, and any answer to any request, in any order.
//
// Whatever is told, calls are bounded and carry names of ours, no rank is given up twice while it
// is wanted, and the core never asks to be woken for nothing.

#include "kube/limits.hpp"
#include "kube/node_pods_core.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

constexpr std::uint32_t replicas_most = 4;

void demand(bool holds) {
  if (!holds)
    std::abort();
}

/// Takes the input apart.
struct bytes {
  const std::uint8_t* at;
  const std::uint8_t* end;

  bool is_over() const { return at == end; }
  std::uint8_t next() { return at < end ? *at++ : 0; }
  std::size_t below(std::size_t bound) { return next() % bound; }
  std::string text() {
    const auto size = std::min<std::ptrdiff_t>(next(), end - at);
    std::string t(at, at + size);
    at += size;
    return t;
  }
};

std::string uid(bytes& in) {
  return "u" + std::to_string(in.below(8));
}

std::string name(bytes& in) {
  return "job-edljob-worker-" + std::to_string(in.below(8));
}

json::value pod(bytes& in) {
  static constexpr const char* phases[] = {"Pending", "Running", "Succeeded", "Failed", ""};
  static constexpr int codes[] = {0, 1, 2, 14, 137, 201, 247};
  json::object metadata{
      {"namespace", "jobs"},
      {"name", name(in)},
      {"uid", uid(in)},
      {"creationTimestamp", std::to_string(in.below(3))},
      {"labels", json::object{{"elasticjob.dlrover/replica-type", "worker"},
                              {"elasticjob.dlrover/rank-index", std::to_string(in.below(6))},
                              {"elasticjob.dlrover/relaunch-count", std::to_string(in.next())}}},
      {"annotations", json::object{{"troupe/restarts", std::to_string(in.below(5))}}},
      {"ownerReferences",
       json::array{json::object{{"uid", in.below(8) == 0 ? "x" : "j"}, {"controller", true}}}}};
  if (in.below(4) == 0)
    metadata["deletionTimestamp"] = "now";
  const auto reason = in.text();
  const json::object state{
      {"terminated", json::object{{"exitCode", codes[in.below(std::size(codes))]},
                                  {"reason", in.below(3) == 0 ? "OOMKilled" : "Error"}}},
      {"waiting", json::object{{"reason", reason}, {"message", reason}}}};
  return json::object{
      {"metadata", metadata},
      {"spec", json::object{{"containers", json::array{json::object{{"name", "c"}}}}}},
      {"status", json::object{{"phase", phases[in.below(std::size(phases))]},
                              {"podIP", "10.0.0." + std::to_string(in.below(4))},
                              {"reason", in.below(5) == 0 ? "Evicted" : ""},
                              {"containerStatuses",
                               json::array{json::object{{"name", "c"}, {"state", state}}}}}}};
}

api_answer answer(bytes& in) {
  static constexpr unsigned statuses[] = {200, 201, 202, 0, 400, 401, 403, 404, 409, 422, 429, 500};
  return {statuses[in.below(std::size(statuses))],
          in.below(4) == 0 ? in.text() : json::serialize(pod(in)),
          {}};
}

class session {
 public:
  explicit session(bytes in) : in_(in) {}

  void play() {
    while (!in_.is_over())
      step();
    take(core_.end(now_));
    // Once each answer says that nothing is there, nothing is left to do.
    for (int n = 0; n < 10'000 && core_.is_busy(); ++n)
      if (open_.empty())
        wake();
      else
        settle({404, "", {}});
    demand(!core_.is_busy() || !told_);
  }

 private:
  void step() {
    switch (in_.below(9)) {
    case 0:
      wanted_ = static_cast<std::uint32_t>(in_.below(replicas_most + 1));
      given_up_.clear();
      return take(core_.want(now_, wanted_, template_of(in_.below(3))));
    case 1:
    case 2:
      return take(core_.pod_is(now_, pod(in_)));
    case 3:
      return take(core_.pod_gone(now_, "jobs/" + name(in_), uid(in_)));
    case 4:
      told_ = true;
      return take(core_.all_told(now_));
    case 5:
      return take(core_.node_lost(now_, "10.0.0." + std::to_string(in_.below(4)), "lost"));
    case 6: {
      boost::system::error_code wrong;
      auto any = json::parse(in_.text(), wrong);
      return take(core_.pod_is(now_, any));
    }
    case 7:
      return wake();
    default:
      if (!open_.empty())
        settle(answer(in_));
    }
  }

  static json::value template_of(std::size_t which) {
    return json::object{
        {"spec",
         json::object{{"containers", json::array{json::object{{"name", "c"}, {"image", which}}}}}}};
  }

  void settle(const api_answer& a) {
    const auto at = open_.begin() + static_cast<std::ptrdiff_t>(in_.below(open_.size()));
    const auto number = *at;
    open_.erase(at);
    take(core_.answered(now_, number, a));
  }

  void wake() {
    if (const auto at = core_.next_wakeup()) {
      now_ = std::max(now_, *at);
      take(core_.tick(now_));
      const auto again = core_.next_wakeup();
      demand(!again || *again > now_);
    }
  }

  void take(const node_pods_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* c = std::get_if<node_pods_core::call>(&e)) {
        demand(c->what.target.rfind("/api/v1/namespaces/jobs/pods", 0) == 0);
        open_.push_back(c->number);
        demand(open_.size() <= limits::pod_calls_max);
      } else if (const auto* g = std::get_if<node_pods_core::node_given_up>(&e)) {
        demand(given_up_.insert(g->rank).second);
      }
  }

  bytes in_;
  instant now_{};
  node_pods_core core_{{{"jobs", "job", "j", "m:1", "t"}, 2, 1 << 30}};
  std::uint32_t wanted_ = 0;
  bool told_ = false;
  std::vector<std::uint64_t> open_; ///< calls that are not answered yet
  std::set<std::uint32_t> given_up_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  session(bytes{data, data + size}).play();
  return 0;
}
