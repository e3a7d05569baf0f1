#include "tests/sim/copy_source.hpp"

#include "messages/kinds.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

void write_key(messages::CopyKey::Builder out, ckpt::save_id id, std::uint64_t step,
               std::uint32_t world_size) {
  out.setGeneration(id.made_by.value);
  out.setSave(id.number);
  out.setStep(step);
  out.setWorldSize(world_size);
}

/// How many messages its pieces take.
std::size_t parts_of(ckpt::sending_plan plan) {
  std::size_t count = 0;
  while (const auto part = plan.next()) {
    plan.sent(*part);
    plan.taken(part->member, part->bytes);
    ++count;
  }
  return count;
}

} // namespace

copy_source::copy_source(host_ptr launcher, dialling dial)
    : launcher_(std::move(launcher)), dial_(std::move(dial)),
      author_(launcher_->name() + "/replicator") {}

void copy_source::give(const ckpt::snapshot_to_copy& snapshot, std::string content, duration takes,
                       std::function<void(result<void>)> done) {
  auto& asked = waiting_.emplace_back();
  asked.number = ++last_;
  asked.snapshot = snapshot;
  asked.content = std::move(content);
  asked.takes = takes;
  asked.done = std::move(done);
  next();
}

void copy_source::next() {
  if (now_ || waiting_.empty())
    return;
  now_ = std::move(waiting_.front());
  waiting_.pop_front();
  auto plan = ckpt::sending_plan::make(now_->snapshot.by, now_->content.size());
  if (!plan)
    return end(tl::make_unexpected(plan.error()));
  now_->plan = std::move(*plan);
  now_->pause = now_->takes / static_cast<duration::rep>(parts_of(*now_->plan) + 1);
  for (const auto member : now_->plan->targets())
    now_->awaited.insert(member);
  launcher_->call_in(now_->snapshot.within, [weak = weak_from_this(), number = now_->number] {
    const auto me = weak.lock();
    if (me && me->now_ && me->now_->number == number)
      me->fail(*me->now_->awaited.begin(),
               {errc::unavailable,
                fmt::format("not held within {}", in_words(me->now_->snapshot.within))});
  });
  dial_targets();
}

// ---- Links ----

void copy_source::dial_targets() {
  std::set<std::string> group;
  for (const auto member : now_->awaited)
    group.insert(address_of(member));
  for (auto at = links_.begin(); at != links_.end();) {
    if (group.count(at->first) == 0)
      at->second.link->close(copy_link::source, "copies are held elsewhere now");
    at = group.count(at->first) == 0 ? links_.erase(at) : std::next(at);
  }
  for (const auto& address : group)
    if (now_ && links_.count(address) == 0)
      dial(address);
  begin_when_all_are_there();
}

void copy_source::dial(const std::string& address) {
  // What comes from a link that was let go of, and replaced, is told by the link itself.
  const auto whose = std::make_shared<const copy_link*>(nullptr);
  copy_link::ear ear;
  ear.at = launcher_;
  ear.connected = [weak = weak_from_this(), address, whose] {
    if (const auto me = weak.lock())
      me->connected(address, *whose);
  };
  ear.heard = [weak = weak_from_this(), address, whose](const messages::any_msg& m) {
    if (const auto me = weak.lock())
      me->heard(address, *whose, m);
  };
  ear.closed = [weak = weak_from_this(), address, whose](const std::string& why) {
    if (const auto me = weak.lock())
      me->lost(address, *whose, why);
  };
  auto link = dial_(address, std::move(ear));
  if (!link)
    return fail(*member_at(address), {errc::closed, "no node answers"});
  *whose = link.get();
  links_[address] = {std::move(link), false};
}

bool copy_source::is_known(const std::string& address, const copy_link* link) const {
  const auto at = links_.find(address);
  return at != links_.end() && at->second.link.get() == link;
}

void copy_source::connected(const std::string& address, const copy_link* link) {
  if (!is_known(address, link))
    return;
  links_[address].connected = true;
  begin_when_all_are_there();
}

void copy_source::lost(const std::string& address, const copy_link* link, const std::string& why) {
  if (!is_known(address, link))
    return;
  links_.erase(address);
  if (const auto member = member_at(address))
    fail(*member, {errc::closed, why});
}

std::optional<std::uint32_t> copy_source::member_at(const std::string& address) const {
  if (now_)
    for (const auto member : now_->plan->targets())
      if (address_of(member) == address)
        return member;
  return std::nullopt;
}

// ---- What targets say ----

void copy_source::heard(const std::string& address, const copy_link* link,
                        const messages::any_msg& m) {
  const auto member = member_at(address);
  if (is_known(address, link) && member)
    hear(*member, m);
}

void copy_source::hear(std::uint32_t member, const messages::any_msg& m) {
  if (m.is<messages::CopyTaken>()) {
    if (!now_->plan->taken(member, m.as<messages::CopyTaken>().read()->getBytes()))
      fail(member, {errc::refused, "it has taken more than was sent"});
  } else if (m.is<messages::CopyRefused>()) {
    fail(member, {errc::refused, m.as<messages::CopyRefused>().read()->getWhy().cStr()});
  } else if (m.is<messages::CopyHeld>()) {
    if (now_->told_of_end.count(member) == 0)
      return fail(member, {errc::refused, "it holds what was not given yet"});
    now_->awaited.erase(member);
    if (now_->awaited.empty())
      end({});
  }
}

// ---- What is said to them ----

void copy_source::later(duration after, void (copy_source::*what)()) {
  launcher_->call_in(after, [weak = weak_from_this(), what, number = now_->number] {
    const auto me = weak.lock();
    if (me && me->now_ && me->now_->number == number)
      (me.get()->*what)();
  });
}

/// A target that is not there costs the others no memory.
void copy_source::begin_when_all_are_there() {
  if (!now_ || now_->begun)
    return;
  for (const auto member : now_->plan->targets()) {
    const auto at = links_.find(address_of(member));
    if (at == links_.end() || !at->second.connected)
      return;
  }
  now_->begun = true;
  for (const auto member : now_->plan->targets())
    say_begin(member);
  later(now_->pause, &copy_source::go_on);
}

/// The window is never full: all pieces here are small.
void copy_source::go_on() {
  if (const auto part = now_->plan->next()) {
    say_part(*part);
    return later(now_->pause, &copy_source::go_on);
  }
  const auto crc32 = libdeflate_crc32(0, now_->content.data(), now_->content.size());
  for (const auto member : now_->plan->targets()) {
    now_->told_of_end.insert(member);
    links_[address_of(member)].link->say(
        copy_link::source, author_
                               .write<messages::CopyEnd>(now_->snapshot.made_by,
                                                         [crc32](auto b) { b.setCrc32(crc32); })
                               .any());
  }
}

void copy_source::say_begin(std::uint32_t member) {
  const auto& given = now_->snapshot;
  const auto fill = [&](messages::CopyBegin::Builder b) {
    write_key(b.initKey(), given.id(), given.step, given.world_size);
    b.setLocalRank(given.local);
    b.setParity(given.by.parity);
    auto ranks = b.initRanks(static_cast<unsigned>(given.by.members.size()));
    for (unsigned i = 0; i < given.by.members.size(); ++i)
      ranks.set(i, given.by.members[i].rank);
    b.setSource(given.by.me);
    b.setTarget(member);
    b.setBytes(now_->content.size());
    if (given.whole)
      write_key(b.initWhole(), {given.whole->made_by, 0}, given.whole->step, given.world_size);
  };
  links_[address_of(member)].link->say(
      copy_link::source, author_.write<messages::CopyBegin>(given.made_by, fill).any());
}

void copy_source::say_part(const ckpt::sending_plan::part& p) {
  const auto* const from = reinterpret_cast<const kj::byte*>(now_->content.data()) + p.from;
  const auto fill = [&](messages::CopyPiece::Builder b) {
    b.setStripe(p.stripe);
    b.setOffset(p.offset);
    b.setContent({from, static_cast<std::size_t>(p.bytes)});
  };
  links_[address_of(p.member)].link->say(
      copy_link::source, author_.write<messages::CopyPiece>(now_->snapshot.made_by, fill).any());
  now_->plan->sent(p);
}

// ---- Its end ----

/// All its links go, so that its targets drop what is half there.
void copy_source::fail(std::uint32_t member, const error& why) {
  const auto text = fmt::format("rank {}'s copy at {}: {}", now_->snapshot.by.members[member].rank,
                                address_of(member), why.what);
  for (const auto each : now_->plan->targets())
    if (const auto gone = links_.extract(address_of(each)); !gone.empty())
      gone.mapped().link->close(copy_link::source, why.what);
  end(failure(why.code, text));
}

/// The next begins in an event of its own.
void copy_source::end(result<void> how) {
  const auto ended = std::move(*now_);
  now_.reset();
  ended.done(how);
  launcher_->call_in({}, [weak = weak_from_this()] {
    if (const auto me = weak.lock())
      me->next();
  });
}

} // namespace troupe::sim
