#include "actors/master/network_check/network_check_core.hpp"

#include "actors/master/network_check/network_check_core_evidence.hpp"
#include "actors/master/network_check/network_check_core_plan.hpp"
#include "actors/master/network_check/network_check_core_verdict.hpp"

namespace troupe::actors::network_check {

std::variant<groups, verdict> next_step(const history& so_far, const policy& with) {
  const auto e = weigh(so_far, with);
  if (so_far.rounds.size() < with.rounds_max)
    if (auto next = plan(e, so_far.rounds.size(), with); !next.empty())
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
