#include "runtime/os/copies/snapshot_sending.hpp"

#include "ckpt/limits.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <utility>

namespace troupe::ckpt {

namespace {

void write_key(messages::CopyKey::Builder out, save_id id, std::uint64_t step,
               std::uint32_t world_size) {
  out.setGeneration(id.made_by.value);
  out.setSave(id.number);
  out.setStep(step);
  out.setWorldSize(world_size);
}

} // namespace

snapshot_sending::snapshot_sending(target_links& links, ports::bulk_links& bulk,
                                   messages::author& author, const snapshot_to_copy& snapshot,
                                   ports::bytes_view memory, sending_plan plan, instant until)
    : links_(links), bulk_(bulk), author_(author), snapshot_(snapshot), memory_(memory),
      plan_(std::move(plan)), until_(until) {
  for (const auto member : plan_.targets()) {
    dialled_.insert(member);
    awaited_.insert(member);
  }
}

result<void> snapshot_sending::begin() {
  std::set<std::string> group;
  for (const auto member : awaited_)
    group.insert(address(member));
  links_.drop_all_but(group, "copies are held elsewhere now");
  for (const auto member : awaited_) {
    const auto where = target_address(address(member));
    if (!where)
      return tl::make_unexpected(where.error());
    links_.dial(address(member), *where);
  }
  return {};
}

void snapshot_sending::fail(std::uint32_t member, const error& why) {
  give_up({why.code, fmt::format("rank {}'s copy at {}: {}", snapshot_.by.members[member].rank,
                                 address(member), why.what)});
}

void snapshot_sending::give_up(const error& why) {
  if (ended_)
    return;
  ended_ = tl::make_unexpected(why);
  for (const auto member : plan_.targets())
    links_.drop(address(member), why.what);
}

// ---- What targets say ----

void snapshot_sending::hear(const target_links::news& n) {
  if (ended_)
    return;
  for (const auto member : plan_.targets()) {
    if (address(member) != n.address)
      continue;
    if (const auto* const gone = std::get_if<target_links::lost>(&n.what))
      return fail(member, gone->why);
    if (const auto* const said = std::get_if<target_links::heard>(&n.what))
      return hear(member, said->message);
  }
}

void snapshot_sending::hear(std::uint32_t member, const messages::any_msg& m) {
  if (m.is<messages::CopyTaken>()) {
    if (!plan_.taken(member, m.as<messages::CopyTaken>().read()->getBytes()))
      fail(member, {errc::refused, "it has taken more than was sent"});
  } else if (m.is<messages::CopyRefused>()) {
    fail(member, {errc::refused, m.as<messages::CopyRefused>().read()->getWhy().cStr()});
  } else if (m.is<messages::Refused>()) {
    fail(member, {errc::refused, m.as<messages::Refused>().read()->getReason().cStr()});
  } else if (m.is<messages::CopyHeld>()) {
    if (ended_at_.count(member) == 0)
      return fail(member, {errc::refused, "it holds what was not given yet"});
    awaited_.erase(member);
    if (awaited_.empty())
      ended_ = result<void>{};
  }
}

// ---- What is said to them ----

void snapshot_sending::step(instant now) {
  wake_at_ = until_;
  if (now >= until_ && !awaited_.empty())
    return fail(*awaited_.begin(),
                {errc::unavailable, fmt::format("not held within {}", in_words(snapshot_.within))});
  for (auto member = dialled_.begin(); member != dialled_.end();)
    member = links_.is_connected(address(*member)) ? dialled_.erase(member) : std::next(member);
  // A target that is not there costs the others no memory.
  if (!dialled_.empty())
    return;
  for (const auto member : plan_.targets())
    if (given_.insert(member).second)
      say_begin(member);
  const auto part = plan_.next();
  const auto when = part ? bulk_.may_send(now, part->bytes) : until_;
  if (part && when <= now) {
    bulk_.sent(now, part->bytes);
    say_part(*part);
    wake_at_ = std::nullopt;
  } else if (sum_some()) {
    wake_at_ = std::nullopt;
  } else {
    wake_at_ = std::min(until_, when);
    for (const auto member : plan_.targets())
      if (plan_.all_sent(member) && ended_at_.insert(member).second)
        say_end(member);
  }
}

void snapshot_sending::say_begin(std::uint32_t member) {
  links_.send(
      address(member),
      author_
          .write<messages::CopyBegin>(snapshot_.made_by,
                                      [&](messages::CopyBegin::Builder b) {
                                        write_key(b.initKey(), snapshot_.id(), snapshot_.step,
                                                  snapshot_.world_size);
                                        b.setLocalRank(snapshot_.local);
                                        b.setParity(snapshot_.by.parity);
                                        const auto& all = snapshot_.by.members;
                                        auto ranks = b.initRanks(static_cast<unsigned>(all.size()));
                                        for (unsigned i = 0; i < all.size(); ++i)
                                          ranks.set(i, all[i].rank);
                                        b.setSource(snapshot_.by.me);
                                        b.setTarget(member);
                                        b.setBytes(memory_.size);
                                        if (snapshot_.whole)
                                          write_key(b.initWhole(), {snapshot_.whole->made_by, 0},
                                                    snapshot_.whole->step, snapshot_.world_size);
                                      })
          .any());
}

void snapshot_sending::say_part(const sending_plan::part& p) {
  const auto* const from = reinterpret_cast<const kj::byte*>(memory_.data) + p.from;
  links_.send(address(p.member), author_
                                     .write<messages::CopyPiece>(
                                         snapshot_.made_by,
                                         [&](messages::CopyPiece::Builder b) {
                                           b.setStripe(p.stripe);
                                           b.setOffset(p.offset);
                                           b.setContent({from, static_cast<std::size_t>(p.bytes)});
                                         })
                                     .any());
  plan_.sent(p);
}

/// The checksum grows while targets are waited for. False: it is there.
bool snapshot_sending::sum_some() {
  const auto bytes = std::min(limits::copy_part, memory_.size - summed_);
  crc32_ = libdeflate_crc32(crc32_, memory_.data + summed_, bytes);
  summed_ += bytes;
  return bytes != 0;
}

void snapshot_sending::say_end(std::uint32_t member) {
  links_.send(
      address(member),
      author_.write<messages::CopyEnd>(snapshot_.made_by, [this](auto b) { b.setCrc32(crc32_); })
          .any());
}

} // namespace troupe::ckpt
