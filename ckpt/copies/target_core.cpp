#include "ckpt/copies/target_core.hpp"

#include "ckpt/arena/place_id.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::ckpt {

namespace {

tl::unexpected<error> invalid(std::string what) {
  return failure(errc::invalid, std::move(what));
}

/// A rank that is named twice would count as two members, and a parity could seem to cover what it
/// does not. Behind check(), which refuses an empty group.
std::optional<std::string> wrong_ranks(const std::vector<std::uint32_t>& ranks,
                                       std::uint32_t world_size) {
  const std::set<std::uint32_t> distinct(ranks.begin(), ranks.end());
  if (distinct.size() != ranks.size())
    return "a rank is twice in the group";
  if (*distinct.rbegin() >= world_size)
    return fmt::format("rank {} is not in a world of {}", *distinct.rbegin(), world_size);
  return std::nullopt;
}

} // namespace

/// A source that was refused may not have heard of it yet, and what it sends until then is about a
/// snapshot that is gone. Only a new beginning is listened to.
target_core::effects target_core::heard(connection_id from, const messages::any_msg& m) {
  effects out;
  if (m.is<messages::CopyBegin>())
    begun(out, from, *m.as<messages::CopyBegin>().read());
  else if (refused_.count(from) != 0)
    return out;
  else if (m.is<messages::CopyPiece>())
    piece_came(out, from, m.as<messages::CopyPiece>());
  else if (m.is<messages::CopyEnd>())
    ended(out, from, m.as<messages::CopyEnd>().read()->getCrc32());
  return out; // a kind of a newer source is none of ours
}

/// What was given in full is in the sums and stays there: the others may still make the stripe
/// whole. What was given in part has spoiled them.
target_core::effects target_core::closed(connection_id which, const std::string& reason) {
  effects out;
  refused_.erase(which);
  const auto gone = incoming_.extract(which);
  if (gone.empty() || gone.mapped().ended)
    return out;
  const auto why = fmt::format("rank {} broke off: {}", gone.mapped().rank(), reason);
  for (const auto id : gone.mapped().stripes)
    break_stripe(out, id, why);
  return out;
}

/// Heard after the stripe was joined, as memory is the shell's: so it ends like any other stripe
/// that breaks, and its sources give up this step at once instead of sending it into nothing.
target_core::effects target_core::no_memory(stripe_id which, const std::string& why) {
  effects out;
  break_stripe(out, which, why);
  return out;
}

// ---- A source begins ----

/// Everything is judged before anything is taken from it: the numbers decide how much memory is
/// asked for and which bytes are added where. A source of another version, or a broken one, costs
/// this node no more than one refusal.
result<target_core::incoming> target_core::judged(messages::CopyBegin::Reader says) const {
  incoming g;
  g.of.local = says.getLocalRank();
  g.of.generation = says.getKey().getGeneration();
  g.of.save = says.getKey().getSave();
  g.of.step = says.getKey().getStep();
  g.of.world_size = says.getKey().getWorldSize();
  g.of.parity = says.getParity();
  g.of.target = says.getTarget();
  g.member = says.getSource();
  g.bytes = says.getBytes();
  // Judged before it is copied: a frame may hold millions of them.
  if (says.getRanks().size() > code::members_max)
    return invalid(fmt::format("a group of {} is too large", says.getRanks().size()));
  for (const auto rank : says.getRanks())
    g.of.ranks.push_back(rank);
  if (g.of.local >= whole_.size())
    return invalid(fmt::format("local rank {} has no memory for others' images: {} have some",
                               g.of.local, whole_.size()));
  const auto how = g.of.how();
  // Before the ranks are looked at: a group of none has no highest rank.
  if (const auto fine = check(how); !fine)
    return tl::make_unexpected(fine.error());
  if (const auto wrong = wrong_ranks(g.of.ranks, g.of.world_size))
    return invalid(*wrong);
  if (g.member >= how.members || g.of.target >= how.members)
    return invalid(fmt::format("member {} gives and {} holds, in a group of {}", g.member,
                               g.of.target, how.members));
  // The loss of that node would take the snapshot and its pieces together.
  if (g.member == g.of.target)
    return invalid(fmt::format("member {} is to hold pieces of its own image", g.member));
  if (g.bytes == 0 || g.bytes > limits::copy_snapshot_max)
    return invalid(fmt::format("no image has {} bytes", g.bytes));
  return g;
}

/// Two sources mean one stripe only if they agree on all of it, ranks and code included: after a
/// restart the same step may come from a world that is put together otherwise.
std::optional<target_core::stripe_id> target_core::find(const group& of,
                                                        std::uint32_t number) const {
  for (const auto& [id, s] : stripes_)
    if (s.number == number && s.of == of)
      return id;
  return std::nullopt;
}

/// The order matters: a source that repeats itself is looked for before old stripes are let go, and
/// both before it joins, or it would break what it has just begun.
void target_core::begun(effects& out, connection_id from, messages::CopyBegin::Reader says) {
  // One snapshot at a time for each link, so that a part needs no name of its snapshot.
  if (incoming_.count(from) != 0)
    return refuse(
        out, from,
        fmt::format("rank {} began another image before all was held", incoming_.at(from).rank()));
  // A new beginning is a new chance, with whatever was wrong before.
  refused_.erase(from);
  auto g = judged(says);
  if (!g)
    return refuse(out, from, g.error().what);
  if (sent_again(out, *g))
    return refuse(out, from,
                  fmt::format("rank {} gives step {} of generation {} again", g->rank(), g->of.step,
                              count_of(generation{g->of.generation})));
  if (says.hasWhole())
    note_whole(g->of.local,
               {says.getWhole().getGeneration(), says.getWhole().getStep(), place_in(g->of.save)});
  // Before any memory is asked for: what is let go here is what the new stripes may need.
  drop_forsaken(out, *g);
  const auto how = g->of.how();
  for (std::uint32_t number = 0; number < how.members; ++number)
    for (std::uint32_t row = 0; row < how.parity; ++row)
      // The same arithmetic as at the source, so both know without a word which pieces come here.
      if (target(how, number, row) == g->of.target && piece_of(how, g->member, number))
        join(out, *g, number, row);
  incoming_.emplace(from, std::move(*g));
}

/// What it gave the first time is in sums already, and nothing takes it out again. In a field of
/// characteristic 2 the same piece added twice is gone from the sum, and nothing shows it but the
/// checksum at a recovery, when it is too late.
bool target_core::sent_again(effects& out, const incoming& g) {
  std::vector<stripe_id> twice;
  for (const auto& [id, s] : stripes_)
    if (s.of == g.of && s.pieces[g.member].begun)
      twice.push_back(id);
  for (const auto id : twice)
    break_stripe(out, id, fmt::format("rank {} gives its image again", g.rank()));
  return !twice.empty();
}

/// Whether the rank is yet to give to it. Only of a rank that has not begun there is something
/// still to come; one that has ended its piece may well give the next step.
bool target_core::awaits(const stripe& s, std::uint32_t rank) const {
  const auto at = std::find(s.of.ranks.begin(), s.of.ranks.end(), rank);
  if (at == s.of.ranks.end())
    return false;
  const auto member = static_cast<std::uint32_t>(at - s.of.ranks.begin());
  return piece_of(s.of.how(), member, s.number) && !s.pieces[member].begun;
}

/// Stripes of another step that can never be whole: all that gave to them have gone; or the source
/// that is missing gives `newer` instead, as ranks that have started again do. Such a stripe would
/// hold its memory for ever: no link ends, and no message about it comes any more.
void target_core::drop_forsaken(effects& out, const incoming& newer) {
  std::map<stripe_id, std::string> forsaken;
  for (const auto& [id, s] : stripes_) {
    const auto waited_for =
        std::any_of(incoming_.begin(), incoming_.end(),
                    [which = id](const auto& g) { return g.second.stripes.count(which) != 0; });
    // Each local rank has memory of its own, and no stripe of the same step is in the way.
    if (s.of.local != newer.of.local ||
        (s.of.step == newer.of.step && s.of.generation == newer.of.generation))
      continue;
    if (!waited_for)
      forsaken[id] = "all that gave to it have gone";
    // An older generation has ended: its ranks save nothing any more. Within one generation only
    // the source itself can show that it has gone on, in the same place.
    else if (s.of.generation < newer.of.generation ||
             (place_in(s.of.save) == place_in(newer.of.save) && awaits(s, newer.rank())))
      forsaken[id] = fmt::format("rank {} gives step {} of generation {} instead", newer.rank(),
                                 newer.of.step, count_of(generation{newer.of.generation}));
  }
  // Behind the loop, since breaking one stripe refuses sources and may break more.
  for (const auto& [id, why] : forsaken)
    break_stripe(out, id, why);
}

/// The first source opens the stripe, whichever that is: links come up in any order. Later ones may
/// bring a longer piece, as snapshots are not of one length; the parity has that of the longest,
/// and grows.
void target_core::join(effects& out, incoming& g, std::uint32_t number, std::uint32_t row) {
  const auto known = find(g.of, number);
  const auto id = known ? *known : ++last_;
  auto& s = stripes_[id];
  const auto how = g.of.how();
  // Known from the snapshot's length, so that an end that comes too early or too late is seen.
  const auto expected = piece_in(how, g.bytes, *piece_of(how, g.member, number)).bytes;
  const auto longest = std::max(s.longest, expected);
  const auto bytes = held_piece::bytes_before + longest;
  if (!known) {
    s.of = g.of;
    s.number = number;
    s.row = row;
    const auto place = place_in(g.of.save);
    out.push_back(open{
        id, g.of.local, bytes, {g.of.generation, g.of.step, place}, whole_at(g.of.local, place)});
  } else if (longest > s.longest) {
    out.push_back(grow{id, bytes});
  }
  s.longest = longest;
  s.pieces[g.member] = {true, false, expected, 0};
  // At a recovery it says how much of the padded sum belongs to this snapshot.
  s.header.bytes[g.member] = g.bytes;
  g.stripes.insert(id);
}

// ---- It gives ----

/// Strictly in order and without a gap: a part that is added twice or to the wrong place spoils the
/// sum, and the sum does not show it.
result<target_core::stripe_id> target_core::judged(const incoming& g, piece_reader part) const {
  const auto id = find(g.of, part.getStripe());
  // Also a stripe that is there, but to which this source has nothing to give, or has given all.
  if (!id || g.stripes.count(*id) == 0)
    return invalid(
        fmt::format("rank {} gives nothing to stripe {} here", g.rank(), part.getStripe()));
  const auto& piece = stripes_.at(*id).pieces[g.member];
  const auto bytes = part.getContent().size();
  if (bytes == 0 || bytes > limits::copy_part)
    return invalid(fmt::format("rank {} gave a part of {} bytes", g.rank(), bytes));
  if (part.getOffset() != piece.received)
    return invalid(fmt::format("rank {} gave the part at {} after {} bytes", g.rank(),
                               part.getOffset(), piece.received));
  if (bytes > piece.expected - piece.received)
    return invalid(
        fmt::format("rank {} gave more than the {} bytes of its piece", g.rank(), piece.expected));
  return *id;
}

/// Added as it comes, so that the only memory is the parity's. `fresh` says from where on the
/// memory holds nothing yet: what a slot held before is never added to, and needs no clearing
/// beforehand.
void target_core::piece_came(effects& out, connection_id from,
                             const messages::msg<messages::CopyPiece>& m) {
  const auto at = incoming_.find(from);
  // An end is final: what comes behind it could change a sum that counts as given.
  if (at == incoming_.end() || at->second.ended)
    return refuse(out, from, "a part of a piece came outside of an image");
  const auto& g = at->second;
  auto part = m.read();
  const auto id = judged(g, *part);
  if (!id)
    return refuse(out, from, id.error().what);
  auto& s = stripes_.at(*id);
  auto& piece = s.pieces[g.member];
  const auto bytes = part->getContent().size();
  out.push_back(add{*id, piece.received, s.written, coefficient(g.of.how(), s.row, g.member), m});
  piece.received += bytes;
  s.written = std::max(s.written, piece.received);
  // The source's window opens by this: it has a bound of bytes under way to each target.
  out.push_back(reply{from, author_
                                .write<messages::CopyTaken>(generation{g.of.generation},
                                                            [bytes](auto b) { b.setBytes(bytes); })
                                .any()});
}

// ---- It ends ----

/// By bytes and not by messages: a piece that has none (a short snapshot) is there from the
/// beginning.
std::optional<std::string> target_core::missing(const incoming& g) const {
  for (const auto id : g.stripes) {
    const auto& piece = stripes_.at(id).pieces[g.member];
    if (piece.received != piece.expected)
      return fmt::format("rank {} ended after {} of {} bytes for stripe {}", g.rank(),
                         piece.received, piece.expected, stripes_.at(id).number);
  }
  return std::nullopt;
}

/// The checksum of the snapshot comes last and goes into each header: at a recovery it tells
/// whether the sum is the snapshot that was given.
void target_core::ended(effects& out, connection_id from, std::uint32_t crc32) {
  const auto at = incoming_.find(from);
  if (at == incoming_.end() || at->second.ended)
    return refuse(out, from, "the end of an image came outside of one");
  auto& g = at->second;
  // A short snapshot is not rounded up with zeros: the source must have meant to send more.
  if (const auto lacks = missing(g))
    return refuse(out, from, *lacks);
  g.ended = true;
  // Those that become whole are taken out of it.
  for (const auto id : std::vector<stripe_id>(g.stripes.begin(), g.stripes.end())) {
    auto& s = stripes_.at(id);
    s.pieces[g.member].ended = true;
    s.header.crc32[g.member] = crc32;
    if (whole(s))
      become_whole(out, id);
  }
}

/// The targets of the stripe's parities give nothing to it; of all others each has to have ended.
bool target_core::whole(const stripe& s) const {
  const auto how = s.of.how();
  for (std::uint32_t member = 0; member < how.members; ++member)
    if (piece_of(how, member, s.number) && !s.pieces[member].ended)
      return false;
  return true;
}

/// The header is written last: from then on the memory is a piece that a recovery may use. Only
/// then are sources told, and each of them once it has no stripe left that is not whole: what is
/// reported as held can be used whatever happens later.
void target_core::become_whole(effects& out, stripe_id which) {
  const auto done = stripes_.extract(which);
  const auto& s = done.mapped();
  auto header = s.header;
  header.magic = held_piece::magic_value;
  header.members = s.of.how().members;
  header.parity = s.of.parity;
  header.target = s.of.target;
  header.stripe = s.number;
  header.row = s.row;
  std::copy(s.of.ranks.begin(), s.of.ranks.end(), header.ranks.begin());
  out.push_back(finish{which, header,
                       slot_snapshot{s.of.step, s.of.generation, s.of.save, s.of.ranks[s.of.target],
                                     s.of.world_size, held_piece::bytes_before + s.longest}});
  // A source that ended and whose link has closed since is not among them: its piece counts, and it
  // hears nothing.
  for (auto g = incoming_.begin(); g != incoming_.end();) {
    if (g->second.stripes.erase(which) == 0 || !g->second.stripes.empty()) {
      ++g;
      continue;
    }
    out.push_back(
        reply{g->first,
              author_.write<messages::CopyHeld>(generation{s.of.generation}, [](auto) {}).any()});
    g = incoming_.erase(g);
  }
}

// ---- Something breaks ----

/// All that gave to it are told which one broke it, and none tries again: the next save is
/// replicated anew, and until then the replica base is what a recovery goes back to.
void target_core::break_stripe(effects& out, stripe_id which, const std::string& why) {
  const auto broken = stripes_.extract(which);
  if (broken.empty())
    return;
  const auto& s = broken.mapped();
  // First the memory, then the words: a source that hears of it may begin at once and need that
  // memory.
  out.push_back(drop{which});
  out.push_back(note{{log::level::warning,
                      "copies_broken",
                      fmt::format("stripe {} of copies of step {} of generation {} is dropped: {}",
                                  s.number, s.of.step, count_of(generation{s.of.generation}), why),
                      {{"step", static_cast<std::int64_t>(s.of.step)},
                       {"generation", static_cast<std::int64_t>(s.of.generation)},
                       {"local_rank", static_cast<std::int64_t>(s.of.local)},
                       {"why", why}}}});
  std::vector<connection_id> gave;
  for (const auto& [who, g] : incoming_)
    if (g.stripes.count(which) != 0)
      gave.push_back(who);
  // Refusing one may break more, and refuse others of them.
  for (const auto who : gave)
    if (incoming_.count(who) != 0)
      refuse(out, who, why);
}

/// What it has given in full counts for the others still. Out of incoming_ before anything is
/// broken: break_stripe() comes back here for the other sources, and must not meet this one again.
void target_core::refuse(effects& out, connection_id who, const std::string& why) {
  refused_.insert(who);
  const auto gone = incoming_.extract(who);
  const auto about = gone.empty() ? generation{} : generation{gone.mapped().of.generation};
  out.push_back(reply{
      who, author_.write<messages::CopyRefused>(about, [&why](auto b) { b.setWhy(why); }).any()});
  if (!gone.empty() && !gone.mapped().ended)
    for (const auto id : gone.mapped().stripes)
      break_stripe(out, id, why);
}

} // namespace troupe::ckpt
