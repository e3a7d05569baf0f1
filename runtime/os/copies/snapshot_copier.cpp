#include "runtime/os/copies/snapshot_copier.hpp"

#include "ckpt/erasure/stripes.hpp"

#include <optional>
#include <utility>

namespace troupe::ckpt {

namespace {

/// What the table says of a snapshot of which copies are requested; nothing if it says what cannot
/// be.
std::optional<snapshot_to_copy> to_copy_in(const slots& words, const snapshot_here& snapshot) {
  const auto& by = words.group(snapshot.slot);
  snapshot_to_copy w;
  static_cast<snapshot_here&>(w) = snapshot;
  if (by.members > slot_group::members_max || by.me >= by.members ||
      !check(code{by.members, by.parity}))
    return std::nullopt;
  for (std::size_t i = 0; i < by.members; ++i)
    w.by.members.push_back({by.ranks[i], text_in(by.addresses[i])});
  w.by.parity = by.parity;
  w.by.me = by.me;
  w.within = patience_of(by.within_ms);
  if (const auto base = words.at(words.place_of(snapshot.slot)).replica_base())
    w.whole = held_step{generation{words.snapshot(*base).generation}, words.snapshot(*base).step};
  return w;
}

} // namespace

snapshot_copier::snapshot_copier(std::shared_ptr<snapshot_watch> memory, giver give,
                                 std::shared_ptr<shared_rank_owners> owners)
    : memory_(std::move(memory)), give_(std::move(give)), owners_(std::move(owners)) {
  memory_->look_for(purpose::copies, [this](const slots& words, const snapshot_here& snapshot) {
    if (on_request_ && words.word(snapshot.slot).copied)
      tell(words, snapshot);
  });
}

/// What is asked of the watch after it was left finds that this is gone.
snapshot_copier::~snapshot_copier() {
  *here_ = false;
  memory_->leave(purpose::copies);
}

void snapshot_copier::tell(const slots& words, const snapshot_here& snapshot) {
  const auto request = to_copy_in(words, snapshot);
  if (!request)
    memory_->finalize(snapshot,
                      failure(errc::invalid, "it was not said which nodes hold its pieces"),
                      purpose::copies);
  else if (told_.insert(request->key()).second)
    on_request_(*request);
}

void snapshot_copier::watch(std::function<void(const snapshot_to_copy&)> on_request) {
  memory_->ask([this, on_request = std::move(on_request)] {
    on_request_ = on_request;
    told_.clear();
  });
}

void snapshot_copier::copy(const snapshot_to_copy& snapshot,
                           std::function<void(result<void>)> done) {
  memory_->ask([this, snapshot, done = std::move(done)] {
    auto& waiters = copies_[snapshot.key()];
    waiters.push_back(done);
    if (waiters.size() == 1)
      copy_now(snapshot);
  });
}

void snapshot_copier::copy_now(const snapshot_to_copy& snapshot) {
  if (!give_)
    return copied(snapshot, failure(errc::refused, "this node does not give copies to others"));
  auto words = memory_->words(snapshot.local);
  if (!words.hold(snapshot.slot))
    return copied(snapshot, gone(snapshot));
  auto sealed = memory_->sealed(snapshot);
  if (!sealed) {
    words.release(snapshot.slot);
    return copied(snapshot, tl::make_unexpected(sealed.error()));
  }
  // The callback keeps what the source reads: this host may go first.
  const auto bytes = std::make_shared<os::shared_memory>(std::move(*sealed));
  const ports::bytes_view view{reinterpret_cast<const std::byte*>(bytes->data()), bytes->bytes()};
  give_(snapshot, view,
        [this, here = here_, memory = memory_, bytes, snapshot](const result<void>& how) {
          memory->words(snapshot.local).release(snapshot.slot);
          memory->ask([this, here, snapshot, how] {
            if (*here)
              copied(snapshot, how);
          });
        });
}

void snapshot_copier::copied(const snapshot_to_copy& snapshot, const result<void>& how) {
  const auto ended = copies_.extract(snapshot.key());
  for (const auto& done : ended.mapped())
    done(how);
}

void snapshot_copier::finalize(const snapshot_to_copy& snapshot, const result<void>& how) {
  memory_->ask([this, snapshot, how] {
    memory_->finalize(snapshot, how, purpose::copies);
    told_.erase(snapshot.key());
  });
}

void snapshot_copier::learn_owners(const messages::msg<messages::RankOwners>& owners) {
  if (owners_)
    owners_->learn(owners);
}

} // namespace troupe::ckpt
