#include "actors/master/job/generation/generation.hpp"

#include "actors/master/job/generation/member/member.hpp"
#include "actors/master/job/generation/rendezvous/rendezvous.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/sup/shell.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

namespace troupe::actors::job {

namespace {

using member_places = std::vector<sup::address<member::handle>>;

sup::tree member_child(const member_world& world, const master_addresses& at,
                       const member_options& own, const sup::address<member::handle>& me) {
  // A node that does not obey in time is evicted, and its member ends with it.
  const sup::stop_within limit{own.obey_within + limits::request_within};
  return sup::worker("member " + own.node, sup::restart::temporary, limit, me,
                     [world, own, me, at](sup::context& ctx) {
                       return member::start(ctx, own, world, me, at.rendezvous, at);
                     });
}

} // namespace

sup::tree generation_tree(const recovery_core::start_generation& what,
                          const rendezvous_options& options, const master_addresses& at) {
  const auto places = std::make_shared<member_places>();
  std::vector<sup::tree> children;
  const member_world shared{what.world, what.owners, what.start};
  auto world = what.world.read();
  for (const auto m : world->getWorld().getMembers()) {
    places->emplace_back();
    const member_options own{m.getNode().cStr(), incarnation{m.getIncarnation()},
                             what.obey_within.at(children.size()), options.recall_within,
                             m.getGroupRank()};
    children.push_back(member_child(shared, at, own, places->back()));
  }
  if (!what.start) {
    // First: members tell it of their nodes.
    const auto to_members = [places](const messages::msg<messages::Start>& start) {
      for (const auto& place : *places)
        sup::post(place, start);
    };
    children.insert(children.begin(),
                    sup::worker("rendezvous", sup::restart::temporary, sup::stop_within{1s},
                                at.rendezvous, [what, to_members, at](sup::context& ctx) {
                                  return rendezvous::start(ctx, what.world, to_members, at);
                                }));
  }
  return sup::one_fate(in_full(what.world.envelope().about), std::move(children))
      .as(sup::restart::temporary);
}

} // namespace troupe::actors::job
