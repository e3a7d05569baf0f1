#pragma once

#include "kube/api.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/time.hpp"
#include "tests/kube/stored_objects.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// An API server in memory: any collection, in a namespace or in none. `tests/kubernetes` compares
/// what it does with a real one.
///
/// It differs in this: server-side apply replaces lists, and each kind has a status subresource.
/// https://kubernetes.io/docs/reference/using-api/api-concepts/
class simulated_api_server {
 public:
  /// How probable each is, for each request or event.
  struct faults {
    double conflict = 0;   ///< 409 for what changes something
    double too_old = 0;    ///< 410 for pages and watches
    double too_many = 0;   ///< 429 with Retry-After
    double broken = 0;     ///< 500; half of them have had their effect
    double unheard = 0;    ///< no answer, and no effect
    double unanswered = 0; ///< no answer, and the effect
    double event_late = 0; ///< by up to `late_most`; those behind it wait
    double event_twice = 0;
    duration late_most = 5s;
    /// What has lost its last owner goes so much later, at the next advance().
    duration collected_after{};
  };

  explicit simulated_api_server(std::uint64_t seed = 1) : random_(seed) {}

  faults wrong;
  /// The verb and the resource ("create", "pods") of what is refused with 403.
  std::set<std::pair<std::string, std::string>> forbidden;
  /// Instead of the server's answer, if it gives one.
  std::function<std::optional<kube::api_answer>(const kube::api_request&)> instead;
  /// By verb and resource: "create pods", "watch nodes".
  std::map<std::string, std::uint64_t> counts;
  /// Changes that watches may begin with.
  std::size_t history_max = 1'000;

  kube::api_answer answer(const kube::api_request& r);

  struct opening {
    std::uint64_t watch = 0;
    kube::api_answer answer; ///< 200: lines follow
  };
  opening watch(const kube::api_request& r);
  /// The next line that is due; nothing: none is, or the watch has ended.
  std::optional<std::string> line(std::uint64_t watch);
  bool is_open(std::uint64_t watch) const;
  /// When the next line of any watch is due; nothing while none waits.
  std::optional<instant> next_line() const;
  void cut(std::uint64_t watch) { watches_.erase(watch); }
  /// All watches end. What is due and was not taken is lost, as when a connection breaks.
  void end_watches() { watches_.clear(); }
  /// A BOOKMARK for those that allow it.
  void bookmark();
  /// All watches from earlier versions are too old.
  void forget_history();

  void advance(instant to);

  /// The world beside requests; not subject to faults. `path`: of one object, as in a request.
  const boost::json::value* find(const std::string& path) const;
  void change(const std::string& path, const std::function<void(boost::json::object&)>& how);
  /// Whatever its finalizers say.
  void remove(const std::string& path);
  /// The objects of a collection, in the order of their names; until something changes.
  std::vector<const boost::json::value*> all(const std::string& path) const;

 private:
  struct change_event {
    std::uint64_t version;
    std::string kind; ///< of the collection
    std::string key;
    boost::json::value before, after; ///< null: there was none; there is none any more
  };
  struct open_watch {
    std::string kind, name_space;
    selection which;
    bool bookmarks = false;
    std::deque<std::pair<instant, std::string>> lines;
  };
  struct page {
    std::vector<boost::json::value> rest;
    std::uint64_t version;
  };
  using object_map = std::map<std::string, boost::json::value>;

  kube::api_answer perform(const kube::api_request& r);
  kube::api_answer get(const place& p) const;
  kube::api_answer list(const place& p);
  kube::api_answer create(const place& p, boost::json::value object);
  kube::api_answer put(const place& p, const boost::json::value& object);
  kube::api_answer patch(const place& p, const kube::api_request& r);
  kube::api_answer apply(const place& p, const boost::json::value& object);
  kube::api_answer erase(const place& p, const boost::json::value& options);
  kube::api_answer store(const place& p, boost::json::value next, unsigned status);
  std::optional<kube::api_answer> fault(const std::string& verb);

  void commit(const std::string& kind, const std::string& key, boost::json::value next);
  void mark_deleted(const place& p, boost::json::value object, std::int64_t grace,
                    bool after_dependents);
  std::vector<place> dependents_of(const std::string& uid) const;
  void leave_dependents(const std::string& uid);
  void collect_garbage(const boost::json::value& gone);
  bool has_owner(const boost::json::value& object) const;
  void tell(open_watch& w, const change_event& e);
  void push(open_watch& w, std::string line);
  void tell_present(open_watch& w);

  random_source random_;
  instant now_{};
  std::uint64_t version_ = 100;
  std::uint64_t last_uid_ = 0;
  std::uint64_t last_watch_ = 0;
  std::uint64_t last_page_ = 0;
  std::map<std::string, object_map> kinds_; ///< by collection without its namespace
  std::deque<change_event> history_;
  std::uint64_t forgotten_ = 100; ///< the newest version that is in no history
  std::map<std::string, page> pages_;
  std::map<std::uint64_t, open_watch> watches_;
  std::deque<std::pair<instant, std::string>> to_collect_; ///< uids of owners that are gone
};

} // namespace troupe::testing
