#include "actors/master/job/generation/rendezvous/rendezvous_core.hpp"

#include "actors/words.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

/// "node a", "a (ranks 0–3), b (4–7)", "64 nodes".
/// Which node has which ranks is what a user needs to read a worker's output; of a large world it
/// would fill the screen.
std::string ranks_in_words(World::Reader world) {
  constexpr unsigned told = 4;
  const auto members = world.getMembers();
  if (members.size() > told)
    return counted(members.size(), "node");
  if (members.size() == 1)
    return fmt::format("node {}", members[0].getNode().cStr());
  std::string text;
  for (const auto m : members) {
    const auto first = m.getFirstRank(), last = first + m.getSlots() - 1;
    const auto ranks = first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last);
    const char* what = !text.empty() ? "" : first == last ? "rank " : "ranks ";
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", m.getNode().cStr(), what, ranks);
  }
  return text;
}

} // namespace

rendezvous_core::rendezvous_core(msg<WorldProposed> world, messages::author author, instant now)
    : world_(std::move(world)), author_(std::move(author)), current_(world_.envelope().about),
      since_(now) {
  auto w = world_.read();
  for (const auto m : w->getWorld().getMembers())
    members_.emplace_back(m.getNode().cStr());
  // The store is where group rank 0 is: its worker may have to host it.
  store_address_ = w->getWorld().getMembers()[0].getAddress().cStr();
  waiting_.begin(now);
}

/// The barrier. Each answer says that no process of an older generation is left on that node, so
/// when all are here none is left anywhere, and new ones may start. There is no time limit: a node
/// that does not answer is given up by its member, which ends this generation.
rendezvous_core::effects rendezvous_core::prepared(instant now, const msg<Prepared>& m) {
  effects out;
  auto answer = m.read();
  const node_name node = answer->getNode().cStr();
  const bool member = std::find(members_.begin(), members_.end(), node) != members_.end();
  // An answer after the seal is a repeat. Another store in it would come too late: the record and
  // Start name the first, and the member of a node that lost its store fails the generation.
  if (sealed_ || m.envelope().about != current_ || !member)
    return out;
  // Of the other nodes the port means nothing, since no store is open there.
  if (node == members_.front()) {
    // Without a store no rank finds another. The node may join anew, with other ports free, and
    // until then another node can be group rank 0.
    if (answer->getStorePort() == 0) {
      out.push_back(evict{
          node,
          "the store of the training processes cannot be opened on it; its own log says why"});
      return out;
    }
    // The newest counts: a node that says it again may have opened another store since, and the one
    // before is closed then.
    store_port_ = answer->getStorePort();
    store_hosted_ = answer->getStoreHosted();
  }
  // Not before the store is known: a world must not be sealed without one.
  prepared_.insert(node);
  if (prepared_.size() == members_.size())
    seal(out, now);
  return out;
}

/// The record is first, and all else waits for it. A Start before it could run workers under a
/// number of which a later master does not know that it was sealed: it would take the world for one
/// that never was, and propose the next beside it. The members come before the planner, since
/// workers that wait cost more than a planner that hears of them a moment later.
void rendezvous_core::seal(effects& out, instant now) {
  sealed_ = true;
  waiting_.end();
  auto world = world_.read();
  // Until the last node was ready; the journal's time is not in it.
  const auto took = now - since_;
  out.push_back(record{author_
                           .write<GenerationSealed>(current_,
                                                    [&](auto b) {
                                                      b.setWorld(world->getWorld());
                                                      b.setStoreAddress(store_address_);
                                                      b.setStorePort(store_port_);
                                                      b.setStoreHosted(store_hosted_);
                                                    })
                           .any()});
  out.push_back(start{author_.write<Start>(current_, [&](auto b) {
    b.setStoreAddress(store_address_);
    b.setStorePort(store_port_);
    b.setStoreHosted(store_hosted_);
  })});
  out.push_back(sealed{author_.write<Sealed>(current_, [&](auto b) {
    b.setWorld(world->getWorld());
    b.setStoreAddress(store_address_);
    b.setStorePort(store_port_);
  })});
  const auto world_size = world->getWorld().getWorldSize();
  out.push_back(note{{log::level::notice,
                      "generation_sealed",
                      fmt::format("generation {} starts: {} on {} (its nodes were ready after {})",
                                  count_of(current_), counted(world_size, "worker"),
                                  ranks_in_words(world->getWorld()), troupe::in_words(took)),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"nodes", static_cast<std::int64_t>(members_.size())},
                       {"world_size", static_cast<std::int64_t>(world_size)},
                       {"prepare_ms", milliseconds_of(took)}}}});
  // An end, not a state: what follows the seal concerns members and planner. A rendezvous that
  // stayed could only fall, and take a generation along that trains.
  out.push_back(done{});
}

/// Says what the wait is for.
/// A node may take as long as its older workers may take to end, half a minute and more.
rendezvous_core::effects rendezvous_core::tick(instant now) {
  effects out;
  if (!waiting_.due(now))
    return out;
  // By name: a user can look at that machine, and in a large world it is most often one.
  std::vector<node_name> unready;
  for (const auto& node : members_)
    if (!prepared_.count(node))
      unready.push_back(node);
  out.push_back(
      note{{log::level::notice,
            "still_waiting",
            fmt::format("generation {} waits for {} to get ready, for {} now", count_of(current_),
                        few_of(unready), troupe::in_words(waiting_.waited(now))),
            {{"waited_ms", milliseconds_of(waiting_.waited(now))}}}});
  return out;
}

std::string rendezvous_core::in_words() const {
  if (sealed_)
    return fmt::format("generation {} is sealed", count_of(current_));
  return fmt::format("preparing generation {}: {} of {} nodes ready", count_of(current_),
                     prepared_.size(), members_.size());
}

} // namespace troupe::actors
