#include "runtime/os/copies/replication_target.hpp"

#include "ckpt/copies/target_core.hpp"
#include "runtime/link/bulk_peers.hpp"
#include "runtime/os/copies/piece_memory.hpp"

#include <fmt/format.h>

#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe::ckpt {

namespace {

const char* const target_name = "replication_target";

} // namespace

/// What links and their events share. All of it happens on the bulk links' thread, but for the end.
class holding_place : public std::enable_shared_from_this<holding_place> {
 public:
  holding_place(std::shared_ptr<const shared_rank_owners> owners, piece_memory memory,
                log::sink sink)
      : owners_(std::move(owners)), memory_(std::move(memory)), sink_(std::move(sink)),
        core_(messages::author(target_name), memory_.local_ranks()) {}

  void accept(ports::peer p) {
    const std::lock_guard held(lock_);
    if (ended_)
      return;
    if (links_.size() >= limits::replication_sources_max)
      return link::turn_away(p, target_name,
                             fmt::format("{} sources of copies are here already", links_.size()));
    const auto id = ++last_;
    const auto link = p.link;
    links_.emplace(id, source{link, p.hello.read()->getNode().cStr()});
    link->open({[me = weak_from_this(), id](const messages::any_msg& m) {
                  if (const auto self = me.lock())
                    self->heard(id, m);
                },
                [me = weak_from_this(), id](const ports::link_ending& how) {
                  if (const auto self = me.lock())
                    self->closed(id, how.reason);
                }});
  }

  /// Nothing happens after this. What is half there is dropped.
  void end() {
    std::map<target_core::connection_id, source> gone;
    const std::lock_guard held(lock_);
    ended_ = true;
    gone.swap(links_);
    memory_.drop_all();
  }

 private:
  /// One link, and the node that has proven to be at its other end.
  struct source {
    ports::connection_ptr link;
    std::string node;
    bool distrusted = false;
  };

  /// Closes the link of a node that gives in another's place; its stripes break with it.
  bool speaks_for_its_ranks(source& from, const messages::any_msg& m) {
    const auto why = m.is<messages::CopyBegin>()
                         ? owners_->validation_error(*m.as<messages::CopyBegin>().read(), from.node)
                         : std::nullopt;
    if (!why)
      return !from.distrusted;
    from.distrusted = true;
    sink_(target_name, {log::level::warning,
                        "spoke_for_another",
                        fmt::format("{} ({}): its link is closed", *why, from.link->peer()),
                        {{"node", from.node}}});
    from.link->close(*why);
    return false;
  }

  void heard(target_core::connection_id from, const messages::any_msg& m) {
    const std::lock_guard held(lock_);
    const auto at = links_.find(from);
    if (at == links_.end())
      return;
    if (speaks_for_its_ranks(at->second, m))
      act(core_.heard(from, m));
    at->second.link->taken();
  }

  void closed(target_core::connection_id which, const std::string& reason) {
    const std::lock_guard held(lock_);
    const auto gone = links_.extract(which);
    if (!gone.empty())
      act(core_.closed(which, reason));
  }

  void act(target_core::effects first) {
    std::deque<target_core::effect> todo(std::make_move_iterator(first.begin()),
                                         std::make_move_iterator(first.end()));
    for (; !todo.empty(); todo.pop_front()) {
      auto more = std::visit([this](const auto& e) { return perform(e); }, todo.front());
      std::move(more.begin(), more.end(), std::back_inserter(todo));
    }
  }

  target_core::effects perform(const target_core::open& o) {
    const auto made = memory_.open(o);
    return made ? target_core::effects{} : core_.no_memory(o.which, made.error().what);
  }
  target_core::effects perform(const target_core::grow& g) {
    const auto made = memory_.grow(g);
    return made ? target_core::effects{} : core_.no_memory(g.which, made.error().what);
  }
  target_core::effects perform(const target_core::add& a) {
    memory_.add(a);
    return {};
  }
  target_core::effects perform(const target_core::finish& f) {
    memory_.finish(f);
    return {};
  }
  target_core::effects perform(const target_core::drop& d) {
    memory_.drop(d);
    return {};
  }
  target_core::effects perform(const target_core::reply& r) {
    // A link that takes no more closes itself; `closed` follows.
    if (const auto at = links_.find(r.to); at != links_.end())
      (void)at->second.link->send(r.message);
    return {};
  }
  target_core::effects perform(const target_core::note& n) {
    sink_(target_name, n.event);
    return {};
  }

  const std::shared_ptr<const shared_rank_owners> owners_;
  std::mutex lock_;
  bool ended_ = false;
  piece_memory memory_;
  const log::sink sink_;
  target_core core_;
  target_core::connection_id last_ = 0;
  std::map<target_core::connection_id, source> links_;
};

class replication_target::impl {
 public:
  impl(std::shared_ptr<ports::bulk_links> bulk, std::shared_ptr<holding_place> place)
      : bulk_(std::move(bulk)), place_(std::move(place)) {
    bulk_->serve(ports::bulk_purpose::COPIES,
                 [place = place_](ports::peer p) { place->accept(std::move(p)); });
  }
  ~impl() {
    bulk_->serve(ports::bulk_purpose::COPIES, {});
    place_->end();
  }

 private:
  const std::shared_ptr<ports::bulk_links> bulk_;
  const std::shared_ptr<holding_place> place_;
};

replication_target::replication_target(std::unique_ptr<impl> own) : impl_(std::move(own)) {}
replication_target::~replication_target() = default;

result<std::unique_ptr<replication_target>>
replication_target::open(const std::shared_ptr<ports::bulk_links>& bulk,
                         std::shared_ptr<const shared_rank_owners> owners,
                         const std::vector<std::vector<int>>& arenas, log::sink sink) {
  auto memory = piece_memory::map(arenas);
  if (!memory)
    return tl::make_unexpected(memory.error());
  auto place =
      std::make_shared<holding_place>(std::move(owners), std::move(*memory), std::move(sink));
  return std::unique_ptr<replication_target>(
      new replication_target(std::make_unique<impl>(bulk, std::move(place))));
}

} // namespace troupe::ckpt
