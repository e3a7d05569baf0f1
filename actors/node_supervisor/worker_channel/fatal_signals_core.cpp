#include "actors/node_supervisor/worker_channel/fatal_signals_core.hpp"

#include "actors/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::actors {

namespace {

/// Nothing: the library tells no other.
const char* name_of(std::int32_t signal) {
  switch (signal) {
  case SIGSEGV:
    return "SIGSEGV";
  case SIGBUS:
    return "SIGBUS";
  case SIGILL:
    return "SIGILL";
  case SIGFPE:
    return "SIGFPE";
  case SIGABRT:
    return "SIGABRT";
  case SIGSYS:
    return "SIGSYS";
  default:
    return nullptr;
  }
}

/// Paths and names that come from the process become a part of a line.
std::string shown(std::string text, std::size_t max) {
  text.resize(std::min(text.size(), max));
  for (auto& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return text;
}

} // namespace

fatal_signals_core::effects fatal_signals_core::begin(generation about, std::uint32_t world_size) {
  effects out;
  world_size_ = world_size;
  if (about == about_)
    return out;
  about_ = about;
  hit_.clear();
  let_go_all(out);
  return out;
}

fatal_signals_core::effects fatal_signals_core::hit(instant now, ports::worker_link from,
                                                    std::int32_t pid, std::uint32_t rank,
                                                    const messages::msg<messages::FatalSignal>& m) {
  effects out;
  const auto correlation = m.envelope().correlation;
  auto body = m.read();
  if (name_of(body->getSignal()) == nullptr || read_so_far_ >= limits::crashes_read_max ||
      !hit_.insert(rank).second) {
    out.push_back(go_on{from, correlation});
    return out;
  }
  ++read_so_far_;
  auto& c = waiting_[rank];
  c.from = from;
  c.correlation = correlation;
  c.signal = body->getSignal();
  c.process = {rank, world_size_, pid, body->getThread()};
  c.until = now + limits::crash_answered_within;
  read_next(out);
  return out;
}

/// All that wait, together.
void fatal_signals_core::read_next(effects& out) {
  read_stacks next;
  next.about = about_;
  next.within = limits::crash_read_within;
  for (auto& [rank, c] : waiting_)
    if (!reading_ && c.at == crash::stage::waits) {
      c.at = crash::stage::is_read;
      next.processes.push_back(c.process);
    }
  if (next.processes.empty())
    return;
  next.number = ++last_number_;
  reading_ = next.number;
  out.push_back(std::move(next));
}

fatal_signals_core::effects
fatal_signals_core::read(std::uint64_t number, const std::vector<diag::crash_report>& reports) {
  effects out;
  if (reading_ != number)
    return out;
  reading_.reset();
  for (auto& [rank, c] : waiting_) {
    if (c.at != crash::stage::is_read)
      continue;
    const auto found = std::find_if(reports.begin(), reports.end(),
                                    [of = rank](const auto& r) { return r.rank == of; });
    tell(out, c,
         found != reports.end() ? *found
                                : diag::crash_report{rank, {}, {}, "this program reads none"});
  }
  read_next(out);
  if (!reading_)
    let_go_all(out);
  return out;
}

/// The line comes before the answer: after that the process ends, and its failure is told.
void fatal_signals_core::tell(effects& out, crash& c, const diag::crash_report& report) const {
  c.at = crash::stage::is_told;
  const auto place = shown(report.place, limits::place_max);
  auto line = fmt::format("rank {} was hit by {}{}{}", c.process.rank, name_of(c.signal),
                          place.empty() ? "" : " in ", place);
  line += report.file.empty()
              ? "; its stacks are not kept: " + shown(report.why, limits::evidence_line_max)
              : "; all its threads: " + report.file;
  out.push_back(note{{log::level::warning,
                      "fatal_signal",
                      std::move(line),
                      {{"generation", static_cast<std::int64_t>(about_.value)},
                       {"rank", std::int64_t{c.process.rank}},
                       {"pid", std::int64_t{c.process.pid}},
                       {"signal", std::int64_t{c.signal}},
                       {"where", place},
                       {"file", report.file}}}});
}

void fatal_signals_core::let_go_all(effects& out) {
  for (const auto& [rank, c] : std::exchange(waiting_, {}))
    out.push_back(go_on{c.from, c.correlation});
}

fatal_signals_core::effects fatal_signals_core::tick(instant now) {
  effects out;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    auto& [rank, c] = *at;
    if (now < c.until) {
      ++at;
      continue;
    }
    if (c.at != crash::stage::is_told)
      tell(out, c,
           {rank, {}, {}, fmt::format("not within {}", in_words(limits::crash_answered_within))});
    out.push_back(go_on{c.from, c.correlation});
    at = waiting_.erase(at);
  }
  return out;
}

std::optional<instant> fatal_signals_core::next_wakeup() const {
  std::optional<instant> next;
  for (const auto& [rank, c] : waiting_)
    next = next ? std::min(*next, c.until) : c.until;
  return next;
}

} // namespace troupe::actors
