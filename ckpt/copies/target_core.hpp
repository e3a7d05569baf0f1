#pragma once

#include "ckpt/arena/held_piece.hpp"
#include "ckpt/erasure/stripes.hpp"
#include "ckpt/limits.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace troupe::ckpt {

/// What a replication target does about what its sources send (messages/copies.capnp). Nothing that
/// is received is taken for granted.
///
/// Several sources send pieces of one stripe, each over its own link and at its own speed, and the
/// target adds every part to the same parity as it arrives. A sum of which one term is missing or
/// doubled is worthless, and it cannot be seen in the bytes. So a stripe breaks as soon as a source
/// leaves before its end or begins again: its memory is free, and all its sources are told. It is
/// whole when every source has ended; only then is `CopyHeld` said.
///
/// Effects are to be done in order. One that is about a stripe for which there was no memory is
/// left out: `no_memory` says so, and what follows from that comes behind what there was to do.
class target_core {
  static_assert(code::parity_max <= limits::copy_parity_max);

 public:
  using connection_id = std::uint64_t;
  /// Never used twice.
  using stripe_id = std::uint64_t;

  /// A step of a place (place_id.hpp), by the generation that saved it. All 0: none.
  struct step_of {
    std::uint64_t generation = 0, step = 0, place = 0;
    friend bool operator==(const step_of& a, const step_of& b) {
      return std::tie(a.generation, a.step, a.place) == std::tie(b.generation, b.step, b.place);
    }
  };
  /// Memory for a parity is to be found. Two steps must survive: this one, and the `whole` one that
  /// all ranks know to be held.
  struct open {
    stripe_id which = 0;
    local_rank local = 0;
    std::uint64_t bytes = 0; ///< with what is before the parity
    step_of given, whole;
    /// Whether that piece of the same place may go for it.
    bool may_replace(const slot_snapshot& held) const;
    /// Where there is no room otherwise, pieces of other places go, the oldest first: a script that
    /// has gone on to its next stage does not say that it needs them no more.
    bool may_displace(const slot_snapshot& held) const;
  };
  /// It is to be longer. What is there stays; behind the old end nothing was added yet.
  struct grow {
    stripe_id which = 0;
    std::uint64_t bytes = 0;
  };
  /// The message's content, times that, is added to the parity from `offset` on. From `fresh` on
  /// nothing was added yet: there are zeros, whatever the memory holds. In the order of arrival,
  /// which differs from source to source: a sum does not mind.
  struct add {
    stripe_id which = 0;
    std::uint64_t offset = 0, fresh = 0;
    std::uint8_t times = 0;
    messages::msg<messages::CopyPiece> message;
  };
  /// Behind all adds of the stripe: effects are done in order.
  struct finish {
    stripe_id which = 0;
    held_piece header;
    slot_snapshot snapshot;
  };
  /// The memory is free for other pieces at once.
  struct drop {
    stripe_id which = 0;
  };
  /// Lost with the link; nothing here depends on its arrival.
  struct reply {
    connection_id to = 0;
    messages::any_msg message;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<open, grow, add, finish, drop, reply, note>;
  using effects = std::vector<effect>;

  target_core(messages::author author, std::size_t local_ranks)
      : author_(std::move(author)), whole_(local_ranks) {}

  /// One message is one event: nothing waits here for another source.
  effects heard(connection_id from, const messages::any_msg& m);
  /// A source that leaves in the middle leaves a sum without one of its terms, which nothing can
  /// repair.
  effects closed(connection_id which, const std::string& reason);
  /// What was to be opened, or to grow, could not.
  effects no_memory(stripe_id which, const std::string& why);

  std::size_t stripes_open() const { return stripes_.size(); }

 private:
  /// What all sources to a stripe say alike.
  struct group {
    local_rank local = 0;
    std::uint64_t generation = 0, save = 0, step = 0;
    std::uint32_t world_size = 0, parity = 0, target = 0;
    std::vector<std::uint32_t> ranks;

    code how() const { return {static_cast<std::uint32_t>(ranks.size()), parity}; }
    friend bool operator==(const group& a, const group& b) {
      return std::tie(a.local, a.generation, a.save, a.step, a.world_size, a.parity, a.target,
                      a.ranks) == std::tie(b.local, b.generation, b.save, b.step, b.world_size,
                                           b.parity, b.target, b.ranks);
    }
  };
  /// `expected` may be 0: such a piece is complete without a part.
  struct member_piece {
    bool begun = false, ended = false;
    std::uint64_t expected = 0, received = 0;
  };
  /// One that is not whole yet. Leaves here in one of two ways, whole or broken, and never comes
  /// back.
  struct stripe {
    group of;
    std::uint32_t number = 0, row = 0;
    std::uint64_t longest = 0; ///< of the pieces that are known
    std::uint64_t written = 0; ///< from there on nothing was added yet
    /// Of the members that give to it; those that hold a parity have none here.
    std::array<member_piece, code::members_max> pieces;
    held_piece header;
  };
  /// A snapshot of which pieces are given on one connection, until all is held or something breaks.
  /// The link's part: which stripes it still owes or waits for.
  struct incoming {
    group of;
    std::uint32_t member = 0;
    std::uint64_t bytes = 0;
    bool ended = false;
    std::set<stripe_id> stripes; ///< that are not whole yet

    std::uint32_t rank() const { return of.ranks[member]; }
  };
  using piece_reader = messages::CopyPiece::Reader;

  void begun(effects& out, connection_id from, messages::CopyBegin::Reader says);
  void piece_came(effects& out, connection_id from, const messages::msg<messages::CopyPiece>& m);
  void ended(effects& out, connection_id from, std::uint32_t crc32);

  void note_whole(local_rank local, const step_of& named);
  step_of whole_at(local_rank local, std::uint64_t place) const;
  result<incoming> judged(messages::CopyBegin::Reader says) const;
  result<stripe_id> judged(const incoming& g, piece_reader part) const;
  /// Which of them is not there in full, in words. Asked for at the end alone: until then a source
  /// may take its time.
  std::optional<std::string> missing(const incoming& g) const;
  std::optional<stripe_id> find(const group& of, std::uint32_t number) const;
  /// By links this shows as a second connection of the same rank, after a crash or a cut.
  bool sent_again(effects& out, const incoming& g);
  /// By this a stripe that can never be whole is told from one that is only slow.
  bool awaits(const stripe& s, std::uint32_t rank) const;
  void drop_forsaken(effects& out, const incoming& newer);
  /// One source may join several stripes here, and is done when all of them are whole.
  void join(effects& out, incoming& g, std::uint32_t number, std::uint32_t row);
  /// All that give have said their end; the bytes were judged by then.
  bool whole(const stripe& s) const;
  void become_whole(effects& out, stripe_id which);
  /// Total: a stripe that is gone already breaks no second time, as refusals lead back here.
  void break_stripe(effects& out, stripe_id which, const std::string& why);
  void refuse(effects& out, connection_id who, const std::string& why);

  messages::author author_;
  /// The steps that are whole, as sources have named them last, in the order of that: for each
  /// local rank one of each place, at most as many as it has slots. A source whose node was
  /// replaced names none until copies have succeeded again; what the others rely on may not go for
  /// it.
  std::vector<std::vector<step_of>> whole_;
  /// Never used twice, so that a late answer of the shell (no_memory) cannot hit another stripe.
  stripe_id last_ = 0;
  /// No more than there are slots: what finds none is broken at once. Looked through, as they are
  /// few: a code leaves at most four parities at a target for each local rank and step.
  std::map<stripe_id, stripe> stripes_;
  /// At most one for each connection, and so bounded as those are. Gone when all is held or
  /// something broke: what remains of it is in the stripes.
  std::map<connection_id, incoming> incoming_;
  /// What they still say about the snapshot that was refused is not listened to. A link's number
  /// leaves this with the next CopyBegin on it, or with the link.
  std::set<connection_id> refused_;
};

} // namespace troupe::ckpt
