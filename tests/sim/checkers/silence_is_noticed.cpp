#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim::checkers {

namespace {

class silence_is_noticed_checker final : public observer {
 public:
  silence_is_noticed_checker(world& w, duration lease) : world_(w), lease_(lease) {}

  void froze(const std::string& host) override {
    host == cluster::master_name() ? void(master_frozen_ = true) : falls_silent(host, "frozen");
  }
  void thawed(const std::string& host) override {
    if (host == cluster::master_name())
      return begin_anew();
    speaks(host, "frozen");
  }
  void way_cut(const std::string& from, const std::string& to) override {
    if (to == cluster::master_name())
      falls_silent(from, "cut");
  }
  void way_free(const std::string& from, const std::string& to) override {
    if (to == cluster::master_name())
      speaks(from, "cut");
  }
  void started(const std::string& host, std::uint64_t) override {
    if (host == cluster::master_name())
      begin_anew();
  }
  void ended(const std::string& host, ending_kind how) override {
    if (host == cluster::master_name())
      links_.clear();
    speaks(host, "frozen");
    // The others' kernels say that their process is gone. Its links may have a successor's already.
    if (how == ending_kind::power_cut)
      for (auto& [connection, l] : links_)
        if (l.peer == host)
          l.dead_since = world_.events.now();
  }
  void weather_changed(const std::string& host, bool bad) override {
    bad ? void(bad_weather_.insert(host)) : void(bad_weather_.erase(host));
    for (auto& [connection, l] : links_)
      if (l.peer == host)
        l.judged_from = world_.events.now();
  }

  void link_opened(const std::string& host, const std::string& peer,
                   std::uint64_t connection) override {
    if (host == cluster::master_name())
      links_[connection] = {peer, world_.events.now(), {}};
  }
  void link_ended(const std::string& host, const std::string&, std::uint64_t connection,
                  ports::link_end) override {
    if (host == cluster::master_name())
      links_.erase(connection);
  }

  void time_passed(instant now) override {
    if (master_frozen_ || now < next_look_)
      return;
    next_look_ = now + lease_ / 50;
    for (const auto& [connection, l] : links_) {
      const auto since = silent_since(l);
      if (since && !bad_weather_.count(l.peer) && now - std::max(*since, l.judged_from) > lease_)
        world_.blame("silence_is_noticed",
                     fmt::format("the master still has link {} with {}, silent for {}", connection,
                                 l.peer, in_words(now - *since)));
    }
  }

 private:
  struct link {
    std::string peer;
    instant judged_from;
    std::optional<instant> dead_since;
  };

  void falls_silent(const std::string& host, const char* why) {
    silent_[host].emplace(why, world_.events.now());
  }
  void speaks(const std::string& host, const char* why) {
    if (silent_[host].erase(why) == 0)
      return;
    for (auto& [connection, l] : links_)
      if (l.peer == host)
        l.judged_from = world_.events.now();
  }
  void begin_anew() {
    master_frozen_ = false;
    for (auto& [connection, l] : links_)
      l.judged_from = world_.events.now();
  }
  std::optional<instant> silent_since(const link& l) const {
    if (l.dead_since)
      return l.dead_since;
    const auto found = silent_.find(l.peer);
    if (found == silent_.end() || found->second.empty())
      return std::nullopt;
    auto first = instant::max();
    for (const auto& [why, since] : found->second)
      first = std::min(first, since);
    return first;
  }

  world& world_;
  const duration lease_;
  std::map<std::uint64_t, link> links_; ///< the master's ends
  std::map<std::string, std::map<std::string, instant>> silent_;
  std::set<std::string> bad_weather_;
  bool master_frozen_ = false;
  instant next_look_{};
};

} // namespace

std::shared_ptr<observer> silence_is_noticed(world& w, duration lease) {
  return std::make_shared<silence_is_noticed_checker>(w, lease);
}

} // namespace troupe::sim::checkers
