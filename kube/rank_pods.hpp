#pragma once

#include "kube/node_pod.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::kube {

/// The pods that one rank has and has had, and what is to be done next about them.
///
/// A live pod is one that has not ended and is not being deleted. There is one while the rank is
/// wanted and has not ended well: a second one is removed, and a missing one is made.
///
/// A pod is made under a name that is chosen before. Until it is known what became of that name, no
/// other one is chosen: so an answer that is lost makes no second pod.
class rank_pods {
 public:
  struct rules {
    std::uint32_t restarts = 3;
    std::uint64_t memory_max = 0; ///< bytes; 0: memory is never raised
    duration pending_limit{};
  };

  /// What the end of the rank's pod means.
  struct verdict {
    enum class what : std::uint8_t { replaced, done, given_up };
    what is = what::replaced;
    pod_end end = pod_end::failed;
    bool is_counted = false;
    duration wait{};    ///< before it is replaced
    std::string reason; ///< in words
    node_pod pod;
  };

  struct action {
    enum class what : std::uint8_t { nothing, create, look, remove };
    what is = what::nothing;
    std::string name;
    std::string uid; ///< of the pod that is removed; if it is known, of the one that is looked for
    bool at_once = false;         ///< removed without its grace
    std::optional<instant> again; ///< with `nothing`: something is to be done then
  };

  /// Why the rank's pod does not begin.
  struct wait {
    std::string kind;
    std::string reason;   ///< in words
    bool is_late = false; ///< it waits beyond the limit
  };

  explicit rank_pods(rules r);

  /// Whether the job has this rank. One that is wanted anew has used up nothing.
  void want(bool wanted);

  /// The job is another size: what was given up is tried again.
  void try_again(instant now);

  /// The job is over: a pod that runs ends by itself, and stays for its logs.
  void end();

  /// Which pods there are is known from now on: before it nothing is concluded.
  std::optional<verdict> begin(instant now);
  /// `watched`: the watch has told it, and will tell when it is gone.
  std::optional<verdict> is(instant now, const node_pod& pod, bool watched);
  std::optional<verdict> gone(instant now, const std::string& uid);
  /// A delete has its effect: the pod is on its way.
  std::optional<verdict> removed(instant now, const std::string& uid);
  /// A delete was refused, for a reason that may be another pod of that name.
  void doubt(instant now, const std::string& uid);
  /// False: no live pod has that address or name.
  bool lost(instant now, const std::string& address, const std::string& reason);
  /// The same of a node that the job has given up: however its pod ends, it ends as `how`.
  bool left(instant now, const std::string& address, pod_end how, const std::string& reason);
  /// A list has told all that there was. What has ended and is in no list is forgotten: their uids.
  std::vector<std::string> all_told(instant now);

  action next(instant now) const;
  /// Nothing: nothing is to be told now.
  std::optional<wait> tell_wait(instant now);

  /// The name under which the next pod is made.
  void choose(std::string name, std::uint64_t id) { making_ = making{std::move(name), id, false}; }
  bool has_chosen() const { return making_.has_value(); }
  std::uint64_t chosen_id() const { return making_ ? making_->id : 0; }
  /// There may be a pod of that name, or not.
  void may_be_there();
  void is_not_there();
  /// It belongs to another pod: another one is chosen.
  void name_is_taken() { making_.reset(); }

  std::uint32_t relaunches() const { return relaunches_; }
  std::uint32_t restarts() const { return restarts_; }
  bool is_given_up() const { return given_up_; }
  /// No other machine had room for its last pod, so the next one may go to that of a lost node.
  bool may_go_anywhere() const { return may_go_anywhere_; }
  const std::map<std::string, std::uint64_t>& memory() const { return memory_; }
  bool is_running() const;
  /// Where its live pods are that are at this address or of this name.
  std::vector<std::string> machines_at(const std::string& address) const;
  /// Also of pods that are over, or gone.
  bool has_been_at(const std::string& address) const;
  /// No pod of it is left, or may be left, that has not ended and does not end by itself.
  bool is_settled() const { return (live() == nullptr || ends_by_itself()) && !making_; }
  bool is_empty() const { return pods_.empty() && !making_; }

 private:
  struct known {
    node_pod pod;
    instant since;
    std::optional<instant> runs_since;
    bool is_watched = false;
    bool is_over = false;             ///< ended or being deleted, and concluded
    std::optional<instant> look_at;   ///< whether it is still there
    std::optional<instant> remove_at; ///< its node is lost, or was given up
    std::string lost_reason;
    pod_end ends_as = pod_end::taken; ///< when it goes for that reason
    bool late_told = false;
  };
  struct making {
    std::string name;
    std::uint64_t id = 0;
    bool may_be_there = false;
  };

  known& known_as(instant now, const node_pod& pod);
  std::optional<verdict> concluded(instant now, known& k);
  std::optional<verdict> over(instant now, known& k, pod_end end, const std::string& why);
  verdict judged(instant now, const node_pod& pod, pod_end end, const std::string& why);
  duration wait_after(pod_end end);
  void forget_row();
  bool raise_memory(const node_pod& pod);
  void remember_gone(const std::string& uid, std::vector<std::string> addresses = {});
  bool was_gone(const std::string& uid) const;
  bool is_kept() const { return wanted_ && !done_; }
  bool ends_by_itself() const { return over_ && is_running(); }
  const known* live() const;    ///< the oldest one
  const known* surplus() const; ///< the youngest one of several
  const known* oldest_ended() const;
  action make_next(instant now) const;
  static action rid_of(instant now, const known& k, bool at_once);
  action keep(instant now, const known& k) const;
  std::optional<instant> next_wait(const known& k) const;
  static std::optional<instant> made_anew_at(const known& k);
  static bool is_at(const known& k, const std::string& address);
  static bool has_address(const known& k, const std::string& address);
  bool goes(const std::string& address, instant at, pod_end how, const std::string& reason);

  rules rules_;
  bool wanted_ = true;
  bool over_ = false; ///< the job
  bool begun_ = false;
  bool done_ = false;
  bool given_up_ = false;
  bool may_go_anywhere_ = false;
  std::map<std::string, known> pods_; ///< by uid
  std::optional<making> making_;
  struct past {
    std::string uid;
    std::vector<std::string> addresses;
  };
  std::deque<past> gone_;
  std::uint64_t newest_id_ = 0;
  std::uint32_t relaunches_ = 0;
  std::uint32_t restarts_ = 0; ///< that are counted
  std::map<std::string, std::uint64_t> memory_;
  std::set<std::string> told_; ///< kinds of waits
  bool is_in_row_ = false;     ///< a pod ended before, and none ran well since
  back_off again_;
  instant not_before_{};
};

} // namespace troupe::kube
