#include "actors/master/network_check/network_check_core.hpp"

#include "actors/master/network_check/network_check_core_evidence.hpp"
#include "actors/master/network_check/network_check_core_plan.hpp"
#include "actors/master/network_check/network_check_core_verdict.hpp"

#include <algorithm>

namespace troupe::actors::network_check {

namespace {

std::size_t rounds_with_witness(const history& h) {
  if (!h.witness)
    return 0;
  return static_cast<std::size_t>(
      std::count_if(h.rounds.begin(), h.rounds.end(), [&h](const round& r) {
        return std::any_of(r.begin(), r.end(), [&h](const group_result& g) {
          return std::count(g.members.begin(), g.members.end(), *h.witness) > 0;
        });
      }));
}

} // namespace

std::variant<groups, verdict> next_step(const history& so_far, const policy& with) {
  const auto e = weigh(so_far, with);
  const auto with_witness = rounds_with_witness(so_far);
  const auto own = so_far.rounds.size() - with_witness;
  if (own < with.rounds_max)
    if (auto next = plan(e, own, with); !next.empty())
      return next;
  if (own > 0 && with_witness < with.witness_rounds_max)
    if (auto next = plan_with_witness(e); !next.empty())
      return next;
  return judge(so_far, e, with);
}

const char* to_string(finding::kind k) {
  switch (k) {
  case finding::kind::faulty_node:
    return "faulty node";
  case finding::kind::faulty_link:
    return "faulty link";
  case finding::kind::slow_node:
    return "slow node";
  case finding::kind::slow_link:
    return "slow link";
  case finding::kind::undecidable:
    return "undecidable";
  }
  return "unknown";
}

} // namespace troupe::actors::network_check
