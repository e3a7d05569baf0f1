#pragma once

#include "kube/api.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// Follows all objects of one collection: lists it by pages, then watches it from there.
///
///     list → watch → (ended by the server) → watch from where it was
///                  → (410, too old)        → list
///                  → (no answer, 429, 5xx) → the same again, later
///            (a page is too large)        → a list by smaller pages
///
/// Each state of an object is told once: what a list repeats and what a watch repeats or delivers
/// late is dropped. What has gone while nothing was watched is found by the next list. Only keys,
/// identities and versions are kept, not the objects.
/// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
class watch_core {
 public:
  struct options {
    std::string collection;     ///< "/api/v1/namespaces/jobs/pods"
    std::string label_selector; ///< empty: all
    std::string field_selector; ///< empty: all
    std::uint64_t seed = 0;     ///< for jitter
  };

  /// Answered by answered() under the same number, in any case.
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  /// A watch: its lines come by line(), its end by closed(), under the same number.
  struct open {
    std::uint64_t number = 0;
    api_request what;
  };
  /// Nothing of the watch is wanted any more.
  struct cut {
    std::uint64_t number = 0;
  };
  /// A new state of an object, or an object that was there at the first list.
  struct is {
    boost::json::value object;
  };
  struct is_gone {
    std::string key; ///< "namespace/name"
    std::string uid;
  };
  /// All that was there at this list has been told. At the first one, and at each later one.
  struct all_told {};
  struct note {
    log::event event;
  };
  using effect = std::variant<call, open, cut, is, is_gone, all_told, note>;
  using effects = std::vector<effect>;

  explicit watch_core(options o);

  effects start(instant now);
  effects answered(instant now, std::uint64_t number, const api_answer& a);
  effects line(instant now, std::uint64_t number, const std::string& text);
  effects closed(instant now, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  effects stop();
  std::optional<instant> next_wakeup() const;

  /// What is told now may be old: it does not watch.
  bool is_behind() const { return phase_ != phase::watching; }
  std::size_t size() const { return known_.size(); }

 private:
  enum class phase : std::uint8_t { idle, listing, watching, resting };
  struct version {
    std::string uid;
    std::string at; ///< resourceVersion
  };

  void list(effects& out, instant now);
  void watch(effects& out, instant now);
  void take_page(effects& out, instant now, const api_answer& a);
  void take_event(effects& out, instant now, const boost::json::value& event);
  void take(effects& out, const boost::json::value& object);
  void take_gone(effects& out, const boost::json::value& object);
  void drop_unseen(effects& out);
  void rest(effects& out, instant now, const api_answer& a, bool list_anew);
  void tell_refused(effects& out, const api_answer& a);
  void tell_unheard(effects& out, instant now, const api_answer& a);
  void heard();
  void leave_watch(effects& out);
  std::string query(const std::string& more) const;

  options options_;
  phase phase_ = phase::idle;
  std::uint64_t last_number_ = 0;
  std::uint64_t asked_ = 0; ///< the call or the watch that is under way
  std::string continue_;    ///< the next page
  std::string from_;        ///< a watch goes on from this resourceVersion; empty: by a list
  std::optional<instant> again_at_;
  instant opened_{};        ///< the watch
  instant watched_until_{}; ///< it is cut if it has not ended by then
  std::size_t page_;        ///< objects of one answer
  std::optional<instant> unheard_since_;
  bool refused_told_ = false;
  bool unheard_told_ = false;
  bool full_told_ = false;
  std::map<std::string, version> known_;
  std::set<std::string> seen_; ///< in this list
  back_off again_;
  random_source random_;
};

} // namespace troupe::kube
