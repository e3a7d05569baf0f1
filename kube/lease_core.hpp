#pragma once

#include "kube/api.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/time.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// Which of several equal programs leads: the one that a Lease (coordination.k8s.io/v1) names and
/// that renews it.
///
///     read → (free, expired or ours) take or renew it → led until the renewal is too old
///          → (another's) look again
///
/// Another's lease has expired when it was seen unchanged for its whole duration: no two machines'
/// clocks are compared. One that leads and cannot renew it stops before others may take it.
class lease_core {
 public:
  struct options {
    std::string name_space, name;
    std::string holder; ///< this one, unlike all others
    std::uint64_t seed = 0;
  };
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  /// From now on this one leads.
  struct leads {};
  /// It may lead no longer: others may already.
  struct leads_no_more {};
  struct note {
    log::event event;
  };
  using effect = std::variant<call, leads, leads_no_more, note>;
  using effects = std::vector<effect>;

  explicit lease_core(options o);

  /// `utc`: RFC 3339 with microseconds, the time of day at `now`.
  effects tick(instant now, const std::string& utc);
  effects answered(instant now, const std::string& utc, std::uint64_t number, const api_answer& a);
  std::optional<instant> next_wakeup() const;
  bool is_leader() const { return is_leader_; }
  /// Which one leads, for people.
  std::string in_words() const;

 private:
  enum class step : std::uint8_t { read, take };

  void read(effects& out);
  void take_read(effects& out, instant now, const std::string& utc, const api_answer& a);
  void take_taken(effects& out, instant now, const api_answer& a);
  void write(effects& out, const std::string& utc, const boost::json::value* lease);
  void again(instant now, duration wait);
  void check_own(effects& out, instant now);
  void tell(effects& out, const api_answer& a);
  std::string path() const;

  options options_;
  bool is_leader_ = false;
  instant renewed_{}; ///< when the renewal that holds was asked for
  instant asked_at_{};
  std::string holder_;  ///< as last read
  std::string version_; ///< as last read, of another's
  instant unchanged_since_{};
  std::string trouble_; ///< that was told
  std::uint64_t last_number_ = 0;
  std::optional<std::pair<std::uint64_t, step>> asked_;
  std::optional<instant> again_at_;
  bool started_ = false;
  random_source random_;
};

} // namespace troupe::kube
