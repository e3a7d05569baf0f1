#pragma once

#include "runtime/ports/worker_links.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Training processes on the channel, played by a test. For one thread.
class fake_worker_links final : public ports::worker_links {
 public:
  ports::worker_link arrives(std::int32_t pid, std::int32_t session) {
    const auto link = ++last_;
    open_.insert(link);
    events_.on_arrived({link, pid, session});
    return link;
  }
  void says(ports::worker_link link, const messages::any_msg& m) { events_.on_message(link, m); }
  void ends(ports::worker_link link) { close(link); }

  bool is_open(ports::worker_link link) const { return open_.count(link) != 0; }
  /// What was sent since it was last asked.
  std::vector<std::pair<ports::worker_link, messages::any_msg>> take_sent() {
    return std::exchange(sent_, {});
  }
  /// "7: rank 0 {...}", one for each record.
  std::vector<std::string> records;

  void listen(ports::worker_link_events events) override {
    events_ = std::move(events);
    open_.clear();
  }
  void send(ports::worker_link to, const messages::any_msg& m) override {
    if (is_open(to))
      sent_.emplace_back(to, m);
  }
  void close(ports::worker_link link) override {
    if (open_.erase(link) != 0)
      events_.on_closed(link);
  }
  void keep(std::uint64_t dump, std::vector<ports::flight_record> all,
            std::function<void(result<std::string>)> done) override {
    for (const auto& record : all)
      records.push_back(std::to_string(dump) + ": rank " + std::to_string(record.rank) + " " +
                        record.json);
    done("/run/stacks/" + std::to_string(dump));
  }

 private:
  ports::worker_link_events events_;
  ports::worker_link last_ = 0;
  std::set<ports::worker_link> open_;
  std::vector<std::pair<ports::worker_link, messages::any_msg>> sent_;
};

} // namespace troupe::testing
