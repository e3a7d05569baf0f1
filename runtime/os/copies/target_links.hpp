#pragma once

#include "runtime/ports/bulk_links.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <variant>

namespace troupe::ckpt {

/// Where a thread sleeps until another one has something for it.
class wake_point {
 public:
  void wake() {
    {
      const std::lock_guard held(lock);
      ++wakes;
    }
    woken.notify_all();
  }

  std::mutex lock;
  std::condition_variable woken;
  std::uint64_t wakes = 0; ///< under `lock`
};

/// Links to targets of copies, by address. One thread of its owner uses it; what happens on links
/// waits until that thread asks for it, and wakes it.
class target_links {
 public:
  /// There is a link now that takes messages.
  struct connected {};
  struct heard {
    messages::any_msg message;
  };
  /// There is none any more, or none could be had.
  struct lost {
    error why;
  };
  struct news {
    std::string address;
    std::variant<connected, heard, lost> what;
  };

  target_links(std::shared_ptr<ports::bulk_links> bulk, std::shared_ptr<wake_point> thread);
  ~target_links();

  /// Dials unless there is a link already. `where` is what `address` says.
  void dial(const std::string& address, const ports::endpoint& where);
  bool is_connected(const std::string& address) const;
  /// What cannot be sent is lost with the link, and `lost` follows.
  void send(const std::string& address, const messages::any_msg& m);
  /// What has happened on links that were not dropped, in order.
  std::optional<news> next();

  void drop(const std::string& address, const std::string& reason);
  void drop_all_but(const std::set<std::string>& addresses, const std::string& reason);
  bool empty() const { return links_.empty(); }

 private:
  struct dialled {
    ports::connection_ptr link;
  };
  struct event {
    std::uint64_t link = 0;
    std::variant<dialled, heard, lost> what;
  };
  /// Outlives this: callbacks come as long as bulk links like. Bounded by each link's credit.
  struct mailbox {
    std::shared_ptr<wake_point> thread;
    std::deque<event> events; ///< under the thread's lock

    void put(event e);
  };
  struct link {
    std::uint64_t number = 0;
    ports::connection_ptr connection; ///< nothing while it is dialled
  };

  news take(dialled what, const std::string& address, link& on);

  const std::shared_ptr<ports::bulk_links> bulk_;
  const std::shared_ptr<mailbox> mail_;
  std::map<std::string, link> links_;
  std::uint64_t last_ = 0;
};

} // namespace troupe::ckpt
