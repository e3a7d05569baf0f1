#include "kube/journal_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"
#include "runtime/base/limits.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

std::string host_of(const std::string& owner) {
  return owner.substr(0, owner.find('/'));
}

/// As Roles call it.
const char* verb_of(const api_request& what) {
  return what.method == "GET" ? "get" : what.method == "POST" ? "create" : "update";
}

} // namespace

journal_core::journal_core(options o)
    : options_(std::move(o)), again_(limits::config_map_again_first, limits::config_map_again_most),
      random_(options_.seed) {}

std::string journal_core::collection() const {
  return fmt::format("/api/v1/namespaces/{}/configmaps", escaped(options_.name_space));
}

std::string journal_core::said(const std::string& what) const {
  return fmt::format("journal 'configmap:{}': {}", options_.name, what);
}

/// One that was deleted is made again with its owners, so that it goes if they have gone. It holds
/// up the deletion of none: that takes a right on them.
json::object journal_core::new_config_map() const {
  json::object metadata{{"name", options_.name}, {"namespace", options_.name_space}};
  if (const auto* known = config_map_.if_contains("metadata"))
    for (auto owner : items(*known, {"ownerReferences"})) {
      if (auto* object = owner.if_object())
        object->erase("blockOwnerDeletion");
      array_at(metadata, "ownerReferences").push_back(std::move(owner));
    }
  return {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", std::move(metadata)}};
}

void journal_core::ask(effects& out, api_request what) {
  asked_ = ++last_number_;
  verb_ = verb_of(what);
  again_at_.reset();
  out.push_back(call{*asked_, std::move(what)});
}

void journal_core::look(effects& out) {
  is_looking_ = true;
  ask(out, {"GET", collection() + "/" + escaped(options_.name), "", ""});
}

/// What others have put there stays: an owner reference, labels of their own.
void journal_core::write_wanted(effects& out) {
  is_looking_ = false;
  auto object = exists_ ? config_map_ : new_config_map();
  put(object, *wanted_);
  auto& metadata = object["metadata"].as_object();
  auto& labels = metadata["labels"];
  if (!labels.is_object())
    labels.emplace_object();
  labels.as_object()["app.kubernetes.io/managed-by"] = "troupe";
  if (!options_.elastic_job.empty())
    labels.as_object()["elasticjob.dlrover/name"] = as_label(options_.elastic_job);
  const auto body = json::serialize(object);
  ask(out, exists_ ? api_request{"PUT", collection() + "/" + escaped(options_.name),
                                 "application/json", body}
                   : api_request{"POST", collection(), "application/json", body});
}

journal_core::effects journal_core::open(instant now) {
  effects out;
  began_ = now;
  look(out);
  return out;
}

journal_core::effects journal_core::answered(instant now, std::uint64_t number,
                                             const api_answer& a) {
  effects out;
  if (asked_ != number)
    return out;
  asked_.reset();
  // A token that was just replaced, or a Role that is: a job that trains is worth a wait.
  const bool may_pass =
      is_passing(a) || a.status == 401 || (a.status == 403 && phase_ == phase::open);
  if (may_pass)
    try_again(out, now, a);
  else if (is_looking_)
    take_look(out, now, a);
  else
    take_written(out, now, a);
  return out;
}

void journal_core::take_look(effects& out, instant now, const api_answer& a) {
  if (a.status != 200 && a.status != 404)
    return fail(out, {errc::refused, in_words(a)});
  exists_ = a.status == 200;
  if (!exists_ && phase_ == phase::open) {
    out.push_back(note{{log::level::warning,
                        "config_map_made_again",
                        fmt::format("journal 'configmap:{}': the ConfigMap was deleted; it is "
                                    "created again with all that this master has recorded",
                                    options_.name),
                        {{"journal", "configmap:" + options_.name}}}});
    return write_wanted(out);
  }
  if (!exists_)
    return tell_found(out, std::nullopt);
  auto seen = parsed(a.body);
  if (!seen || !seen->is_object() || member(*seen, {"metadata", "resourceVersion"}) == nullptr)
    return phase_ == phase::open
               ? try_again(out, now, {0, "the API server's answer is no ConfigMap", {}})
               : fail(out, {errc::invalid, "the API server's answer is no ConfigMap"});
  const auto there = image_in(*seen);
  if (!there)
    return fail(out, there.error());
  remember(seen->as_object());
  if (phase_ == phase::open || (wanted_ && *there && (*there)->owner == options_.owner))
    return compare(out, now, *there);
  tell_found(out, *there);
}

/// The records are in `kept_` and `wanted_`, and the server's own notes are long.
void journal_core::remember(const json::object& seen) {
  config_map_ = seen;
  if (auto* binary = config_map_["binaryData"].if_object(); binary != nullptr)
    binary->erase("records");
  config_map_["metadata"].as_object().erase("managedFields");
}

void journal_core::tell_found(effects& out, const std::optional<journal_image>& there) {
  found f;
  f.is_new = !there;
  f.image = there.value_or(journal_image{});
  if (f.is_new)
    f.image.job = options_.job;
  f.as = term{std::max(options_.least_term, f.image.term + 1)};
  if (exists_)
    f.elastic_job_uid = elastic_job_of(config_map_);
  kept_ = f.image;
  taken_up_ = !f.is_new;
  out.push_back(std::move(f));
}

journal_core::effects journal_core::take(bool anew) {
  effects out;
  wanted_ = kept_;
  wanted_->job = options_.job;
  wanted_->uid = options_.uid;
  wanted_->run = options_.run;
  wanted_->owner = options_.owner;
  wanted_->term = std::max(options_.least_term, kept_.term + 1);
  if (anew) {
    wanted_->replace({});
    taken_up_ = false;
  }
  write_wanted(out);
  return out;
}

/// Of an owner, or of one that may have become it by a write that was not answered.
void journal_core::compare(effects& out, instant now, const std::optional<journal_image>& there) {
  if (there && *there == *wanted_)
    return settle(out, now);
  if (there && there->owner != options_.owner)
    return fail(out, {errc::refused,
                      fmt::format("another master has taken it up, as epoch {} on {}: this one is "
                                  "replaced, decides nothing more and ends",
                                  there->term, host_of(there->owner))});
  if (!there || !(*there == kept_))
    return fail(out, {errc::invalid, "something else than a master has changed its records; what "
                                     "this master has decided is not there any more"});
  write_wanted(out);
}

void journal_core::take_written(effects& out, instant now, const api_answer& a) {
  // Another one was faster, or has deleted it. A namespace that is missing is no such thing.
  if (a.status == 409 || (a.status == 404 && exists_))
    return ++conflicts_ < limits::config_map_conflicts_max ? look(out) : try_again(out, now, a);
  if (a.status != 200 && a.status != 201)
    return fail(out, {errc::refused, in_words(a)});
  const auto seen = parsed(a.body);
  if (!seen || !seen->is_object() || member(*seen, {"metadata", "resourceVersion"}) == nullptr)
    return look(out);
  exists_ = true;
  remember(seen->as_object());
  settle(out, now);
}

/// What was wanted is there; what was promised meanwhile is wanted next.
void journal_core::settle(effects& out, instant now) {
  kept_ = std::move(*std::exchange(wanted_, std::nullopt));
  conflicts_ = 0;
  records_wait_since_ = records_waiting_ == 0 ? std::nullopt : std::optional(now);
  if (auto next = std::exchange(promised_, std::nullopt); next && !(*next == kept_)) {
    wanted_ = std::move(next);
    return write_wanted(out);
  }
  well_again(out, now);
  if (phase_ == phase::opening) {
    phase_ = phase::open;
    out.push_back(opened{term{kept_.term}, taken_up_});
  }
  answer_written(out);
  begin_next(out);
}

void journal_core::answer_written(effects& out) {
  for (const auto& w : std::exchange(being_written_, {}))
    if (w.index)
      out.push_back(appended{w.which, *w.index});
    else
      out.push_back(compacted{w.which, {}});
}

journal_core::effects journal_core::append(instant now, ticket which, std::string record,
                                           bool may_be_promised) {
  effects out;
  if (!records_wait_since_)
    records_wait_since_ = now;
  if (records_waiting_ >= limits::journal_queue_max) {
    asked_for_.emplace_back(shed_append{which});
  } else {
    ++records_waiting_;
    asked_for_.emplace_back(append_request{which, std::move(record), may_be_promised});
  }
  begin_next(out);
  return out;
}

journal_core::effects journal_core::read(ticket which) {
  effects out;
  asked_for_.emplace_back(read_request{which});
  begin_next(out);
  return out;
}

journal_core::effects journal_core::compact(ticket which, selection keep) {
  effects out;
  asked_for_.emplace_back(compact_request{which, std::move(keep)});
  begin_next(out);
  return out;
}

/// While a write is under way only what may be promised has its turn.
bool journal_core::may_begin_next() const {
  if (phase_ != phase::open || asked_for_.empty())
    return false;
  const auto* r = std::get_if<append_request>(&asked_for_.front());
  return !wanted_ || (promised_ && (r == nullptr || r->may_be_promised));
}

void journal_core::begin_next(effects& out) {
  if (phase_ == phase::lost)
    return answer_all(out, lost_);
  while (may_begin_next()) {
    if (std::holds_alternative<append_request>(asked_for_.front())) {
      begin_appends(out);
      continue;
    }
    const auto next = std::move(asked_for_.front());
    asked_for_.pop_front();
    if (const auto* c = std::get_if<compact_request>(&next))
      begin_compaction(out, *c);
    else if (const auto* r = std::get_if<read_request>(&next))
      out.push_back(have_read{r->which, records_of(answered_for())});
    else
      out.push_back(appended{std::get<shed_append>(next).which,
                             failure(errc::overloaded, said("too many records wait"))});
  }
}

/// As many as wait and fit.
void journal_core::begin_appends(effects& out) {
  auto next = answered_for();
  while (!asked_for_.empty()) {
    auto* r = std::get_if<append_request>(&asked_for_.front());
    if (r == nullptr || (promised_ && !r->may_be_promised))
      break;
    if (next.records.size() + framed_size(r->record.size()) > limits::config_map_bytes_max) {
      if (!being_written_.empty())
        break;
      auto shorter = with_room_made(next, r->record);
      if (!shorter) {
        refuse_record(out, *r);
        --records_waiting_;
        asked_for_.pop_front();
        continue;
      }
      next = std::move(*shorter);
    } else {
      next.append(r->record);
    }
    if (promised_)
      out.push_back(appended{r->which, next.last});
    else
      being_written_.push_back({r->which, next.last, r->may_be_promised});
    --records_waiting_;
    asked_for_.pop_front();
  }
  if (promised_)
    promised_ = std::move(next);
  if (being_written_.empty())
    return;
  full_told_ = false;
  wanted_ = std::move(next);
  write_wanted(out);
}

/// A new world takes the place of the one before it: they need not fit both.
std::optional<journal_image> journal_core::with_room_made(journal_image full,
                                                          const std::string& record) const {
  auto all = records_of(full);
  if (!keep_ || !all)
    return std::nullopt;
  all->push_back(record);
  ++full.last;
  full.replace(keep_(std::move(*all)));
  return full.records.size() <= limits::config_map_bytes_max ? std::optional(std::move(full))
                                                             : std::nullopt;
}

void journal_core::begin_compaction(effects& out, const compact_request& c) {
  keep_ = c.keep;
  const auto all = records_of(answered_for());
  if (!all) {
    out.push_back(compacted{c.which, tl::make_unexpected(all.error())});
    return;
  }
  const auto stay = keep_(*all);
  if (stay.size() == all->size()) {
    out.push_back(compacted{c.which, {}});
    return;
  }
  if (promised_) {
    promised_->replace(stay);
    out.push_back(compacted{c.which, {}});
    return;
  }
  wanted_ = kept_;
  wanted_->replace(stay);
  being_written_.push_back({c.which, std::nullopt});
  write_wanted(out);
}

journal_core::effects journal_core::tick(instant now) {
  effects out;
  if (again_at_ && now >= *again_at_)
    look(out);
  if (const auto until = patient_until(); until && now >= *until)
    promise(out, now);
  return out;
}

std::optional<instant> journal_core::next_wakeup() const {
  const auto until = patient_until();
  return again_at_ && until ? std::min(*again_at_, *until) : again_at_ ? again_at_ : until;
}

std::optional<instant> journal_core::patient_until() const {
  const bool may_promise = std::all_of(being_written_.begin(), being_written_.end(),
                                       [](const write& w) { return w.may_be_promised; });
  return phase_ == phase::open && wanted_ && !promised_ && records_wait_since_ && may_promise
             ? std::optional(*records_wait_since_ + options_.patience)
             : std::nullopt;
}

} // namespace troupe::kube
