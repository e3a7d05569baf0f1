#pragma once

#include "kube/api.hpp"
#include "kube/journal_image.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// A job's journal in a ConfigMap.
///
///     open:   read → found → take() → written with an owner and a term of its own → opened
///     append: written as a whole, with all that waits → answered
///     no answer, 429, 5xx → later: read and compare → written again, or it was there already
///     conflict            → read and compare
///     not written for options::patience → answered all the same, if it may be
///
/// Each write names the version that it has read (`resourceVersion`), so the server refuses all but
/// one of two writes to the same version. A write of which no answer came may still take effect
/// later: what is wanted stays the same, byte for byte, until one read shows it. So no record is
/// there twice.
///
/// An API server may be away for an hour, and a job of which a process fails meanwhile is not to
/// stand still for so long. So what cannot be written is promised after a while, and is written
/// when it can be; but only what may be: a master that opens the journal before that knows nothing
/// of it. What may not, and all behind it, waits.
///
/// Each opening takes the journal from the one before it: the newest master commands. An owner that
/// finds another one's name fails everything from then on with `refused`.
class journal_core {
 public:
  struct options {
    std::string name_space;
    std::string name;        ///< of the ConfigMap
    std::string elastic_job; ///< the ElasticJob that this is a part of; empty: none
    std::string job;
    std::string uid; ///< of the ElasticJob
    std::optional<std::uint64_t> run;
    std::string owner; ///< of this opening only: "HOST/NUMBER"
    std::uint64_t least_term =
        0;                  ///< so that a master whose journal was deleted is newer all the same
    std::uint64_t seed = 0; ///< for jitter
    duration patience;      ///< how long a record waits to be written
  };
  /// Answers come in the order of the tickets.
  using ticket = std::uint64_t;
  /// Of all records those that stay, in their order.
  using selection = std::function<std::vector<std::string>(std::vector<std::string>)>;

  /// Answered by answered() under the same number, in any case.
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  /// Answered by take(), or by nothing: then the journal is left as it is. May come again, if
  /// another master was faster.
  struct found {
    journal_image image; ///< of a new journal: empty, with this job's name
    bool is_new = false;
    term as;
    /// The ElasticJob that the ConfigMap belongs to by now; empty: none.
    std::string elastic_job_uid = {};
  };
  struct opened {
    term as;
    bool taken_up = false;
  };
  struct not_opened {
    error why;
  };
  struct appended {
    ticket which;
    result<std::uint64_t> index;
  };
  struct have_read {
    ticket which;
    result<std::vector<std::string>> records;
  };
  struct compacted {
    ticket which;
    result<void> outcome;
  };
  struct note {
    log::event event;
  };
  using effect =
      std::variant<call, found, opened, not_opened, appended, have_read, compacted, note>;
  using effects = std::vector<effect>;

  explicit journal_core(options o);

  effects open(instant now);
  /// `anew`: without the records that were found.
  effects take(bool anew);

  effects append(instant now, ticket which, std::string record, bool may_be_promised);
  effects read(ticket which);
  /// `keep` is used again when a record does not fit.
  effects compact(ticket which, selection keep);

  effects answered(instant now, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  /// Nothing is called any more; what waits is answered with `closed`.
  effects ended();
  std::optional<instant> next_wakeup() const;
  /// Something has not been answered yet, or was answered and is not written.
  bool is_busy() const {
    return !asked_for_.empty() || (phase_ == phase::open && wanted_.has_value());
  }

 private:
  struct append_request {
    ticket which;
    std::string record;
    bool may_be_promised;
  };
  struct read_request {
    ticket which;
  };
  struct compact_request {
    ticket which;
    selection keep;
  };
  /// Too much waited when it came. It is answered in its turn.
  struct shed_append {
    ticket which;
  };
  using request = std::variant<append_request, read_request, compact_request, shed_append>;
  /// Answered once `wanted_` is known to be in the ConfigMap.
  struct write {
    ticket which;
    std::optional<std::uint64_t> index; ///< nothing: a compaction
    bool may_be_promised = true;
  };
  enum class phase : std::uint8_t { opening, open, lost };

  void ask(effects& out, api_request what);
  void look(effects& out);
  void write_wanted(effects& out);
  void take_look(effects& out, instant now, const api_answer& a);
  void remember(const boost::json::object& seen);
  void take_written(effects& out, instant now, const api_answer& a);
  void compare(effects& out, instant now, const std::optional<journal_image>& there);
  void tell_found(effects& out, const std::optional<journal_image>& there);
  void settle(effects& out, instant now);
  bool may_begin_next() const;
  std::optional<instant> patient_until() const;
  void promise(effects& out, instant now);
  void answer_written(effects& out);
  /// What all that was answered comes to.
  const journal_image& answered_for() const { return promised_ ? *promised_ : kept_; }
  void begin_next(effects& out);
  void begin_appends(effects& out);
  void begin_compaction(effects& out, const compact_request& c);
  std::optional<journal_image> with_room_made(journal_image full, const std::string& record) const;
  void refuse_record(effects& out, const append_request& r);
  void try_again(effects& out, instant now, const api_answer& a);
  void tell_waits(effects& out, instant now, const std::string& why);
  void fail(effects& out, const error& why);
  void answer_all(effects& out, const error& why);
  void well_again(effects& out, instant now);
  std::string collection() const;
  std::string in_words(const api_answer& a) const;
  std::string said(const std::string& what) const;
  boost::json::object new_config_map() const;

  options options_;
  phase phase_ = phase::opening;
  instant began_{};
  std::deque<request> asked_for_; ///< in their order; not under way
  std::size_t records_waiting_ = 0;
  std::vector<write> being_written_;
  journal_image kept_;                  ///< what is known to be in the ConfigMap
  std::optional<journal_image> wanted_; ///< what is being written
  /// What was answered for without being written; only while a write is under way.
  std::optional<journal_image> promised_;
  std::optional<instant> records_wait_since_;
  boost::json::object config_map_; ///< as it was seen last
  bool exists_ = false;
  bool taken_up_ = false;
  bool is_looking_ = false; ///< what is asked is a read
  selection keep_;
  error lost_;

  std::uint64_t last_number_ = 0;
  std::optional<std::uint64_t> asked_;
  const char* verb_ = ""; ///< of what was asked last
  std::optional<instant> again_at_;
  std::optional<instant> waits_since_; ///< the user was told
  int conflicts_ = 0;
  bool full_told_ = false;
  back_off again_;
  random_source random_;
};

} // namespace troupe::kube
