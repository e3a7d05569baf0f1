#include "actors/node_supervisor/worker_channel/worker_channel_core.hpp"

#include "actors/limits.hpp"
#include "messages/conversations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using messages::msg;

namespace {

instant at(std::uint64_t ns) {
  return instant{} + std::chrono::duration_cast<instant::duration>(
                         std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

double seconds(duration d) {
  return std::chrono::duration<double>(d).count();
}

/// What a process says of itself becomes a part of a line.
std::string shown(const std::string& text) {
  auto cut = text.substr(0, limits::worker_version_max);
  for (auto& c : cut)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return cut;
}

} // namespace

worker_channel_core::worker_channel_core(messages::author author, instant now)
    : author_(std::move(author)), began_(now), told_since_(now) {}

// ---- which processes are there ----

std::optional<std::uint32_t> worker_channel_core::rank_of(const peer& p) const {
  for (const auto each : {p.pid, p.session})
    if (const auto found = ranks_.find(each); each > 0 && found != ranks_.end())
      return found->second;
  return std::nullopt;
}

std::size_t worker_channel_core::links_of(std::uint32_t rank) const {
  return static_cast<std::size_t>(std::count_if(
      peers_.begin(), peers_.end(), [rank](const auto& each) { return each.second.rank == rank; }));
}

worker_channel_core::effects worker_channel_core::arrived(instant now,
                                                          const ports::worker_peer& newcomer) {
  effects out;
  auto& p = peers_[newcomer.link];
  p.pid = newcomer.pid;
  p.session = newcomer.session;
  p.since = now;
  judge(out, now, newcomer.link, p);
  return out;
}

/// While none is watched it may be one that soon is: tick() gives it up.
void worker_channel_core::judge(effects& out, instant now, link which, peer& p) {
  if (p.rank || p.leaving || ranks_.empty())
    return;
  const auto rank = rank_of(p);
  if (!rank)
    return turn_away(out, now, which, p, "it is no training process of this node");
  if (links_of(*rank) >= limits::worker_links_per_rank)
    return turn_away(
        out, now, which, p,
        fmt::format("rank {} has {} connections already", *rank, limits::worker_links_per_rank));
  p.rank = rank;
  hear(out, now, which, p);
}

void worker_channel_core::turn_away(effects& out, instant now, link which, peer& p,
                                    const std::string& why) {
  p.leaving = true;
  out.push_back(close{which});
  if (now - told_since_ >= limits::refusals_counted_for) {
    told_since_ = now;
    turned_away_ = 0;
  }
  if (++turned_away_ > limits::refusals_told)
    return;
  say(out, log::level::warning, "worker_turned_away",
      fmt::format("process {} is turned away from the workers' channel: {}{}", p.pid, why,
                  turned_away_ == limits::refusals_told ? "; more are not told for a while" : ""));
}

worker_channel_core::effects worker_channel_core::closed(instant, link which) {
  effects out;
  const auto found = peers_.find(which);
  if (found == peers_.end())
    return out;
  const auto rank = found->second.rank;
  peers_.erase(found);
  if (!rank)
    return out;
  if (const auto talks = talks_.find(*rank); talks != talks_.end() && talks->second == which)
    talks_.erase(talks);
  if (!gathering_)
    return out;
  const auto coming = gathering_->coming.find(*rank);
  if (coming != gathering_->coming.end() && coming->second.from == which)
    drop_record(out, *rank, "its connection has ended");
  return out;
}

/// Repeats with each start and end of a generation.
worker_channel_core::effects worker_channel_core::watched(instant now,
                                                          const msg<messages::Watched>& m) {
  effects out;
  const bool is_new = m.envelope().about != about_;
  take_watched(out, m);
  if (is_new)
    started_ = now;
  know_peers(out, now);
  return out;
}

worker_channel_core::effects worker_channel_core::found(instant now,
                                                        const msg<messages::Watched>& m) {
  // What the agent has said meanwhile is newer.
  if (m.envelope().about == about_ || about_ != generation{})
    return {};
  effects out;
  take_watched(out, m);
  know_peers(out, now);
  return out;
}

void worker_channel_core::take_watched(effects& out, const msg<messages::Watched>& m) {
  auto body = m.read();
  add(out, crashes_.begin(m.envelope().about, body->getWorldSize()));
  if (m.envelope().about != about_) {
    about_ = m.envelope().about;
    first_step_told_ = false;
    started_.reset();
    talks_.clear();
  }
  failed_at_.reset();
  if (body->getFailedAtNs() != 0)
    failed_at_ = at(body->getFailedAtNs());
  ranks_.clear();
  for (const auto p : body->getProcesses())
    if (ranks_.size() < limits::watched_ranks_max && p.getPid() > 0)
      ranks_[p.getPid()] = p.getRank();
}

/// Those of an older generation are being ended, and leave by themselves.
void worker_channel_core::know_peers(effects& out, instant now) {
  for (auto& [which, p] : peers_)
    judge(out, now, which, p);
}

// ---- what they say ----

worker_channel_core::effects worker_channel_core::said(instant now, link from,
                                                       const messages::any_msg& m) {
  effects out;
  const auto found = peers_.find(from);
  if (found == peers_.end() || found->second.leaving)
    return out;
  auto& p = found->second;
  messages::route(m, messages::worker_news{},
                  messages::receivers{[&](const msg<messages::WorkerHello>& h) {
                                        p.hello = h;
                                        hear(out, now, from, p);
                                      },
                                      [&](const msg<messages::FirstStep>& f) {
                                        p.first_step = f;
                                        hear(out, now, from, p);
                                      },
                                      [&](const msg<messages::FlightRecord>& r) {
                                        if (p.rank)
                                          take_piece(out, from, p, r);
                                      },
                                      [&](const msg<messages::FatalSignal>& f) {
                                        take_crash(out, now, from, p, f);
                                      }});
  return out;
}

/// Of a process that is known. A hello of another generation is from one that is being ended.
void worker_channel_core::hear(effects& out, instant now, link from, const peer& p) {
  if (!p.rank || !p.hello)
    return;
  auto hello = p.hello.read();
  if (generation{hello->getGeneration()} != about_)
    return;
  if (const auto before = talks_.find(*p.rank); before == talks_.end() || before->second != from) {
    talks_[*p.rank] = from;
    say(out, log::level::debug, "worker_hello",
        fmt::format("rank {} (pid {}) is on the channel: libtroupe_worker {}, Python {}, torch {}, "
                    "feeds {:#x}, stacks by signal {}",
                    *p.rank, p.pid, shown(hello->getVersion()), shown(hello->getPython()),
                    shown(hello->getTorch()), hello->getFeeds(), hello->getStacksSignal()));
  }
  if (hello->getFirstStepNs() != 0)
    take_first_step(out, now, p, at(hello->getFirstStepNs()), {});
  if (!p.first_step)
    return;
  auto step = p.first_step.read();
  take_first_step(out, now, p, at(step->getAtNs()), at(step->getSinceFailureNs()) - instant{});
}

/// Told once, for the whole job, at the node of rank 0. `told`: how long after the failure, as the
/// process has it; the agent's word counts more, but an agent that took these processes over has
/// none.
void worker_channel_core::take_first_step(effects& out, instant now, const peer& p, instant at,
                                          duration told) {
  if (*p.rank != 0 || first_step_told_)
    return;
  first_step_told_ = true;
  if (at < began_)
    return; // this actor's predecessor has told it
  at = std::min(at, now);
  auto after_failure = told > limits::first_step_most ? duration::zero() : told;
  if (failed_at_)
    after_failure = std::max(at - *failed_at_, duration::zero());
  if (after_failure > duration::zero())
    return out.push_back(note{
        {log::level::notice,
         "first_step",
         fmt::format("the first step was made {:.1f} s after the failure", seconds(after_failure)),
         {{"generation", static_cast<std::int64_t>(about_.value)},
          {"since_failure_ms", milliseconds_of(after_failure)}}}});
  out.push_back(note{
      {log::level::info,
       "first_step",
       started_ ? fmt::format("the first step was made {:.1f} s after the workers were started",
                              seconds(std::max(at - *started_, duration::zero())))
                : std::string("the first step was made"),
       {{"generation", static_cast<std::int64_t>(about_.value)}}}});
}

// ---- flight records ----

/// Beside the stacks: what PyTorch itself recorded of the last collectives of each process.
worker_channel_core::effects
worker_channel_core::stacks_wanted(instant now, const msg<messages::StacksWanted>& m) {
  effects out;
  if (gathering_)
    end_gathering(out);
  if (talks_.empty() || m.envelope().about != about_)
    return out;
  gathering g;
  g.dump = m.read()->getDump();
  g.question = ++last_question_;
  g.until = now + std::min<duration>(std::chrono::milliseconds(std::min<std::uint64_t>(
                                         m.read()->getWithinMs(), 1'000'000)),
                                     limits::flight_records_within);
  const auto request =
      messages::with_correlation(author_.write<messages::FlightRecordRequest>(about_, [](auto) {}),
                                 g.question)
          .any();
  for (const auto& [rank, to] : talks_) {
    g.coming[rank].from = to;
    out.push_back(send{to, request});
  }
  gathering_ = std::move(g);
  return out;
}

/// In order, each where the last one ended, and all of them no more than was announced.
void worker_channel_core::take_piece(effects& out, link from, const peer& p,
                                     const msg<messages::FlightRecord>& m) {
  if (!gathering_ || m.envelope().correlation != gathering_->question)
    return;
  const auto found = gathering_->coming.find(*p.rank);
  if (found == gathering_->coming.end() || found->second.from != from)
    return;
  auto body = m.read();
  if (body->isWhy())
    return drop_record(out, *p.rank, shown(body->getWhy()));
  auto& json = found->second.json;
  const auto piece = body->getPiece();
  const auto bytes = body->getBytes();
  if (bytes > limits::flight_record_max || bytes < json.size() || body->getAt() != json.size() ||
      piece.size() > bytes - json.size() || (piece.size() == 0 && bytes != json.size()))
    return drop_record(out, *p.rank, "its pieces do not fit");
  if (gathering_->bytes + piece.size() > limits::flight_records_max)
    return drop_record(out, *p.rank, "those of this node are too large together");
  gathering_->bytes += piece.size();
  json.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  if (json.size() < bytes)
    return;
  gathering_->whole.push_back({*p.rank, std::move(json)});
  gathering_->coming.erase(found);
  if (gathering_->coming.empty())
    end_gathering(out);
}

void worker_channel_core::drop_record(effects& out, std::uint32_t rank, const std::string& why) {
  gathering_->bytes -= gathering_->coming[rank].json.size();
  gathering_->coming.erase(rank);
  say(out, log::level::debug, "no_flight_record",
      fmt::format("rank {} has no flight record: {}", rank, why));
  if (gathering_->coming.empty())
    end_gathering(out);
}

void worker_channel_core::end_gathering(effects& out) {
  for (const auto& [rank, record] : gathering_->coming)
    say(out, log::level::debug, "no_flight_record",
        fmt::format("rank {} has no flight record: it did not come in time", rank));
  auto whole = std::move(gathering_->whole);
  const auto dump = gathering_->dump;
  gathering_.reset();
  if (!whole.empty())
    out.push_back(keep{dump, std::move(whole)});
}

worker_channel_core::effects worker_channel_core::kept(const result<std::string>& directory) {
  effects out;
  if (directory)
    say(out, log::level::info, "flight_records",
        fmt::format("the records of the last collectives are at {}", *directory));
  else
    say(out, log::level::warning, "no_flight_records",
        fmt::format("the records of the last collectives cannot be written: {}",
                    directory.error().what));
  return out;
}

// ---- time ----

worker_channel_core::effects worker_channel_core::tick(instant now) {
  effects out;
  for (auto& [which, p] : peers_) {
    if (p.leaving || now < p.since + limits::worker_hello_within)
      continue;
    if (!p.rank)
      turn_away(out, now, which, p, "it is no training process of this node");
    else if (!p.hello)
      turn_away(out, now, which, p,
                fmt::format("rank {} has not said hello within {:.0f} s", *p.rank,
                            seconds(limits::worker_hello_within)));
  }
  if (gathering_ && now >= gathering_->until)
    end_gathering(out);
  add(out, crashes_.tick(now));
  return out;
}

std::optional<instant> worker_channel_core::next_wakeup() const {
  std::optional<instant> next;
  const auto at_latest = [&next](instant t) { next = next ? std::min(*next, t) : t; };
  for (const auto& [which, p] : peers_)
    if (!p.leaving && (!p.rank || !p.hello))
      at_latest(p.since + limits::worker_hello_within);
  if (gathering_)
    at_latest(gathering_->until);
  if (const auto crashes = crashes_.next_wakeup())
    at_latest(*crashes);
  return next;
}

std::string worker_channel_core::in_words() const {
  if (peers_.empty())
    return "no process is connected";
  return fmt::format("{} of {} processes talk", talks_.size(), ranks_.size());
}

void worker_channel_core::say(effects& out, log::level severity, const char* name,
                              std::string text) const {
  out.push_back(note{{severity,
                      name,
                      std::move(text),
                      {{"generation", static_cast<std::int64_t>(about_.value)}}}});
}

} // namespace troupe::actors
