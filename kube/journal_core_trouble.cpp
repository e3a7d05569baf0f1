// What journal_core does when something is in its way: it waits, refuses, or gives the journal up.
#include "kube/journal_core.hpp"
#include "kube/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

constexpr std::size_t kib = 1024;

template<class... Ts>
struct cases : Ts... {
  using Ts::operator()...;
};
template<class... Ts>
cases(Ts...) -> cases<Ts...>;

} // namespace

/// A right that lacks is named as a Role would give it.
std::string journal_core::in_words(const api_answer& a) const {
  const auto words = kube::in_words(a);
  return a.status != 403 ? words
                         : fmt::format("{}; a Role of this pod's service account must allow `{}`: "
                                       "apiGroups [\"\"], resources [configmaps], verbs [get, "
                                       "create, update]",
                                       words, verb_);
}

void journal_core::refuse_record(effects& out, const append_request& r) {
  const auto what =
      fmt::format("it is full: a record of {} KiB does not fit beside the {} KiB of {} that are "
                  "taken; a job of this size needs its journal on a volume (--journal FILE)",
                  (r.record.size() + kib - 1) / kib, kept_.records.size() / kib,
                  limits::config_map_bytes_max / kib);
  out.push_back(appended{r.which, failure(errc::overloaded, said(what))});
  if (!std::exchange(full_told_, true))
    out.push_back(note{{log::level::error,
                        "config_map_full",
                        fmt::format("journal 'configmap:{}': {}", options_.name, what),
                        {{"journal", "configmap:" + options_.name}}}});
}

/// What took effect of the last call is unknown, so the next one is a read.
void journal_core::try_again(effects& out, instant now, const api_answer& a) {
  if (phase_ == phase::opening && now >= began_ + limits::config_map_open_within)
    return fail(out,
                {errc::unavailable, fmt::format("{}, for {} now", in_words(a),
                                                troupe::in_words(limits::config_map_open_within))});
  auto wait = again_.next();
  wait += std::chrono::duration_cast<duration>(wait * random_.unit() / 2);
  if (a.retry_after)
    wait = std::max(wait, std::min<duration>(*a.retry_after, limits::config_map_retry_after_most));
  again_at_ = now + wait;
  tell_waits(out, now, in_words(a));
}

void journal_core::tell_waits(effects& out, instant now, const std::string& why) {
  if (waits_since_)
    return;
  waits_since_ = now;
  const auto text =
      phase_ == phase::opening
          ? fmt::format("journal 'configmap:{}': {}; this master waits for it for {}",
                        options_.name, why, troupe::in_words(limits::config_map_open_within))
          : fmt::format("journal 'configmap:{}': {}; it is tried again until it can be written. "
                        "Training goes on, and workers are restarted on the same nodes after at "
                        "most {}; no node is replaced until then",
                        options_.name, why, troupe::in_words(options_.patience));
  out.push_back(note{{log::level::warning,
                      "config_map_waits",
                      text,
                      {{"journal", "configmap:" + options_.name}}}});
}

/// What waits is answered for, and what comes until it is written.
void journal_core::promise(effects& out, instant now) {
  tell_waits(out, now, "the API server has not answered yet");
  promised_ = *wanted_;
  answer_written(out);
  begin_next(out);
}

void journal_core::well_again(effects& out, instant now) {
  again_.reset();
  if (!waits_since_)
    return;
  const auto waited = now - *std::exchange(waits_since_, std::nullopt);
  out.push_back(
      note{{log::level::notice,
            "config_map_goes_on",
            fmt::format("journal 'configmap:{}': it is written again, after {}", options_.name,
                        troupe::in_words(waited)),
            {{"journal", "configmap:" + options_.name}, {"waited_ms", milliseconds_of(waited)}}}});
}

/// For good. A journal that is not open yet is not told of by a line of its own: the program that
/// opens it ends with it.
void journal_core::fail(effects& out, const error& why) {
  const bool was_open = phase_ == phase::open;
  phase_ = phase::lost;
  lost_ = {why.code, said(why.what)};
  if (!was_open) {
    out.push_back(not_opened{lost_});
    return;
  }
  out.push_back(note{
      {log::level::error,
       "journal_lost",
       fmt::format("journal 'configmap:{}' is lost to this master: {}", options_.name, why.what),
       {{"journal", "configmap:" + options_.name}}}});
  answer_all(out, lost_);
}

void journal_core::answer_all(effects& out, const error& why) {
  wanted_.reset();
  promised_.reset();
  records_wait_since_.reset();
  for (const auto& w : std::exchange(being_written_, {}))
    if (w.index)
      out.push_back(appended{w.which, tl::make_unexpected(why)});
    else
      out.push_back(compacted{w.which, tl::make_unexpected(why)});
  const auto answer = cases{[&](const append_request& r) {
                              out.push_back(appended{r.which, tl::make_unexpected(why)});
                            },
                            [&](const shed_append& r) {
                              out.push_back(appended{r.which, tl::make_unexpected(why)});
                            },
                            [&](const read_request& r) {
                              out.push_back(have_read{r.which, tl::make_unexpected(why)});
                            },
                            [&](const compact_request& r) {
                              out.push_back(compacted{r.which, tl::make_unexpected(why)});
                            }};
  for (const auto& each : std::exchange(asked_for_, {}))
    std::visit(answer, each);
  records_waiting_ = 0;
}

journal_core::effects journal_core::ended() {
  effects out;
  asked_.reset();
  again_at_.reset();
  phase_ = phase::lost;
  lost_ = {errc::closed, said("the master has ended")};
  answer_all(out, lost_);
  return out;
}

} // namespace troupe::kube
