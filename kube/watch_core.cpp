#include "kube/watch_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// Versions of one server are numbers that grow. Where they are not, any other version is newer.
bool is_newer(const std::string& one, const std::string& than) {
  const auto read = [](const std::string& text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, wrong] = std::from_chars(text.data(), end, value);
    return wrong == std::errc() && stop == end ? std::optional(value) : std::nullopt;
  };
  const auto a = read(one), b = read(than);
  return a && b ? *a > *b : one != than;
}

} // namespace

watch_core::watch_core(options o)
    : options_(std::move(o)), page_(limits::page_of_list),
      again_(limits::watch_again_first, limits::watch_again_most), random_(options_.seed) {}

watch_core::effects watch_core::start(instant now) {
  effects out;
  list(out, now);
  return out;
}

watch_core::effects watch_core::stop() {
  effects out;
  leave_watch(out);
  phase_ = phase::idle;
  asked_ = 0;
  again_at_.reset();
  return out;
}

std::string watch_core::query(const std::string& more) const {
  std::string text = options_.collection + "?" + more;
  if (!options_.label_selector.empty())
    text += "&labelSelector=" + escaped(options_.label_selector);
  if (!options_.field_selector.empty())
    text += "&fieldSelector=" + escaped(options_.field_selector);
  return text;
}

void watch_core::list(effects& out, instant) {
  phase_ = phase::listing;
  again_at_.reset();
  if (continue_.empty())
    seen_.clear();
  auto what = fmt::format("limit={}", page_);
  if (!continue_.empty())
    what += "&continue=" + escaped(continue_);
  asked_ = ++last_number_;
  out.push_back(call{asked_, {"GET", query(what), "", ""}});
}

void watch_core::watch(effects& out, instant now) {
  phase_ = phase::watching;
  again_at_.reset();
  opened_ = now;
  // Not all at once: a server that is started again has all its watches opened at the same moment.
  const auto lasts = std::chrono::duration_cast<std::chrono::seconds>(
      limits::watch_for + limits::watch_for * random_.unit());
  watched_until_ = now + lasts + limits::watch_ends_late;
  asked_ = ++last_number_;
  out.push_back(open{asked_,
                     {"GET",
                      query(fmt::format("watch=1&allowWatchBookmarks=true&resourceVersion={}"
                                        "&timeoutSeconds={}",
                                        escaped(from_), lasts.count())),
                      "", ""}});
}

void watch_core::leave_watch(effects& out) {
  if (phase_ == phase::watching)
    out.push_back(cut{asked_});
}

watch_core::effects watch_core::answered(instant now, std::uint64_t number, const api_answer& a) {
  effects out;
  if (phase_ != phase::listing || number != asked_)
    return out;
  if (a.status == 200) {
    take_page(out, now, a);
    return out;
  }
  // Of objects that are larger than most, as pods with long templates and statuses.
  if (a.is_too_large)
    page_ = std::max<std::size_t>(page_ / 4, 1);
  // A list whose pages are too old (410) begins anew.
  rest(out, now, a, true);
  return out;
}

void watch_core::take_page(effects& out, instant now, const api_answer& a) {
  const auto page = parsed(a.body);
  if (!page || member(*page, {"items"}) == nullptr)
    return rest(out, now, {0, "the answer is no list", {}}, true);
  for (const auto& object : items(*page, {"items"})) {
    seen_.insert(key_of(object));
    take(out, object);
  }
  continue_ = text(*page, {"metadata", "continue"});
  if (!continue_.empty())
    return list(out, now);
  from_ = text(*page, {"metadata", "resourceVersion"});
  drop_unseen(out);
  heard();
  refused_told_ = false;
  out.push_back(all_told{});
  watch(out, now);
}

void watch_core::take(effects& out, const json::value& object) {
  const auto key = key_of(object);
  const auto at = text(object, {"metadata", "resourceVersion"});
  const auto uid = text(object, {"metadata", "uid"});
  if (key.empty() || uid.empty())
    return;
  auto found = known_.find(key);
  if (found == known_.end()) {
    if (known_.size() >= limits::objects_followed_max) {
      if (!std::exchange(full_told_, true))
        out.push_back(note{{log::level::error,
                            "too_many_objects",
                            fmt::format("{} has more than {} objects: further ones are ignored",
                                        options_.collection, limits::objects_followed_max),
                            {{"collection", options_.collection}}}});
      return;
    }
    found = known_.emplace(key, version{}).first;
  } else if (found->second.uid != uid) {
    out.push_back(is_gone{key, found->second.uid});
  } else if (at == found->second.at) {
    return;
  }
  found->second = {uid, at};
  out.push_back(is{object});
}

void watch_core::take_gone(effects& out, const json::value& object) {
  const auto found = known_.find(key_of(object));
  // One that is late may be of an earlier object of that name.
  if (found == known_.end() || found->second.uid != text(object, {"metadata", "uid"}))
    return;
  out.push_back(is_gone{found->first, found->second.uid});
  known_.erase(found);
}

void watch_core::drop_unseen(effects& out) {
  for (auto at = known_.begin(); at != known_.end();) {
    if (seen_.count(at->first) != 0) {
      ++at;
      continue;
    }
    out.push_back(is_gone{at->first, at->second.uid});
    at = known_.erase(at);
  }
  seen_.clear();
}

watch_core::effects watch_core::line(instant now, std::uint64_t number, const std::string& text) {
  effects out;
  if (phase_ != phase::watching || number != asked_)
    return out;
  if (const auto event = parsed(text)) {
    take_event(out, now, *event);
  } else {
    leave_watch(out);
    rest(out, now, {0, "a line of the watch is no JSON", {}}, true);
  }
  return out;
}

void watch_core::take_event(effects& out, instant now, const json::value& event) {
  const auto type = text(event, {"type"});
  const auto* object = member(event, {"object"});
  if (type == "ERROR" || object == nullptr) {
    leave_watch(out);
    const auto code = object != nullptr ? number(*object, {"code"}) : std::nullopt;
    return rest(out, now,
                {static_cast<unsigned>(code.value_or(500)),
                 object != nullptr ? json::serialize(*object) : "",
                 {}},
                true);
  }
  // A watch tells changes in their order, so what is not newer was told before.
  const auto at = text(*object, {"metadata", "resourceVersion"});
  if (at.empty() || !is_newer(at, from_))
    return;
  from_ = at;
  heard();
  if (type == "DELETED")
    take_gone(out, *object);
  else if (type == "ADDED" || type == "MODIFIED")
    take(out, *object);
}

watch_core::effects watch_core::closed(instant now, std::uint64_t number, const api_answer& a) {
  effects out;
  if (phase_ != phase::watching || number != asked_)
    return out;
  const bool ended_well = a.status == 200;
  if (ended_well && now - opened_ >= limits::watch_least) {
    heard();
    watch(out, now);
    return out;
  }
  if (now - opened_ >= limits::watch_least)
    unheard_since_.reset();
  // What was missed meanwhile a watch tells as well as a list, unless it is too old for that.
  rest(out, now, a, !ended_well && !is_passing(a));
  return out;
}

/// Until the same is tried again, or a list is begun.
void watch_core::rest(effects& out, instant now, const api_answer& a, bool list_anew) {
  phase_ = phase::resting;
  asked_ = 0;
  continue_.clear();
  if (list_anew)
    from_.clear();
  auto wait = again_.next();
  if (a.status == 403 || a.status == 404) {
    tell_refused(out, a);
    wait = limits::watch_again_most;
  } else {
    tell_unheard(out, now, a);
  }
  wait += std::chrono::duration_cast<duration>(wait * random_.unit());
  if (a.retry_after)
    wait = std::max(wait, std::min<duration>(*a.retry_after, limits::mark_retry_after_most));
  again_at_ = now + wait;
}

void watch_core::heard() {
  again_.reset();
  unheard_since_.reset();
  unheard_told_ = false;
}

/// A server that is started again is back before this.
void watch_core::tell_unheard(effects& out, instant now, const api_answer& a) {
  if (!unheard_since_)
    unheard_since_ = now;
  if (now - *unheard_since_ < limits::watch_unheard_untold || std::exchange(unheard_told_, true))
    return;
  out.push_back(
      note{{log::level::warning,
            "watch_unheard",
            fmt::format(
                "{} cannot be followed for {} s: {}. What changes there is not known until it can; "
                "it is tried again every {} s",
                options_.collection,
                std::chrono::duration_cast<std::chrono::seconds>(now - *unheard_since_).count(),
                in_words(a),
                std::chrono::duration_cast<std::chrono::seconds>(limits::watch_again_most).count()),
            {{"collection", options_.collection}}}});
}

void watch_core::tell_refused(effects& out, const api_answer& a) {
  if (std::exchange(refused_told_, true))
    return;
  out.push_back(
      note{{log::level::error,
            "watch_refused",
            fmt::format(
                "{} cannot be watched: {}; {}. It is tried again every {} s", options_.collection,
                in_words(a),
                a.status == 403 ? "the service account needs the verbs list and watch for it"
                                : "is its definition (CRD) installed?",
                std::chrono::duration_cast<std::chrono::seconds>(limits::watch_again_most).count()),
            {{"collection", options_.collection}}}});
}

std::optional<instant> watch_core::next_wakeup() const {
  if (phase_ == phase::watching)
    return watched_until_;
  return again_at_;
}

watch_core::effects watch_core::tick(instant now) {
  effects out;
  if (phase_ == phase::watching && now >= watched_until_) {
    leave_watch(out);
    unheard_since_.reset();
    rest(out, now, {0, "a watch has not ended in time", {}}, false);
  } else if (phase_ == phase::resting && again_at_ && now >= *again_at_) {
    if (from_.empty())
      list(out, now);
    else
      watch(out, now);
  }
  return out;
}

} // namespace troupe::kube
