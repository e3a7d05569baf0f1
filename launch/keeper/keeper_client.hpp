#pragma once

#include "launch/keeper/control_group.hpp"
#include "launch/keeper/limits.hpp"
#include "launch/keeper/packet.hpp"
#include "messages/keeper.capnp.h"
#include "runtime/os/io_thread.hpp"
#include "runtime/ports/process.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::launch {

/// The supervisor's end of what it and its keeper say to each other. Thread-safe but for the
/// construction; sending waits while the keeper is stopped. Lives until its process ends.
class keeper_client {
 public:
  using kept_files = std::array<os::unique_fd, limits::kept_slots>;

  /// Waits until the keeper has said what there is.
  keeper_client(os::unique_fd socket, kept_files kept, result<control_group> group);

  struct survivor {
    std::uint64_t process = 0;
    std::uint64_t label = 0;
    std::int32_t pid = 0;
    bool is_store = false;
  };
  /// What an earlier supervisor started and did not live to see the end of.
  const std::vector<survivor>& survivors() const { return survivors_; }
  /// How many supervisors came before this one.
  int earlier_lives() const { return earlier_lives_; }
  /// Where processes are to live; else why there is none.
  const result<control_group>& group() const { return group_; }

  /// Bytes for a successor; replaces what was in this slot. False if they are too many.
  bool keep(std::size_t slot, std::string_view bytes);
  /// What the predecessor left there; nothing if it left nothing.
  std::optional<std::string> kept(std::size_t slot) const;

  /// A number for a new process, another one than any supervisor of this keeper has used.
  std::uint64_t next_process();
  /// A message of messages::keeper_orders.
  template<class T, class Fill>
  void say(Fill&& fill, int file = -1) {
    send(messages::local<T>(said_by, std::forward<Fill>(fill)).any(), file);
  }
  template<class T>
  void say() {
    say<T>([](auto) {});
  }
  void signal(std::uint64_t process, int number, bool alone = false);
  void adopted(std::uint64_t process);
  /// Why this process cannot go on. It is to end now; another one is started in its place.
  void failed(const std::string& why);
  /// As above, where there is no memory to say so with.
  void out_of_memory();
  /// Nothing more is to be done after this process.
  void over(int exit_code);

  /// What the keeper tells of processes.
  struct listener {
    std::function<void(std::uint64_t process, const ports::exit_status& how)> ended;
    std::function<void(const ports::left_behind& left)> awaited;
    std::function<void(const ports::swept& what)> swept;
  };
  /// From now on messages are handed out, by `io`'s thread.
  void listen(os::io_thread& io, listener to);
  /// Hears of the user's signals, also of those that came before.
  void on_user_signal(std::function<void(int)> tell);

 private:
  static constexpr auto said_by = "node_supervisor";

  void send(const messages::any_msg& m, int file);
  void await();
  void take(const messages::any_msg& m);
  void take_signal(int number);
  std::vector<listener> listeners();

  os::unique_fd socket_;
  kept_files kept_;
  result<control_group> group_;
  std::vector<survivor> survivors_;
  int earlier_lives_ = 0;
  std::mutex mutex_;
  std::uint64_t last_process_ = 0;
  const messages::any_msg out_of_memory_;
  std::vector<listener> listeners_;
  std::function<void(int)> on_user_signal_;
  std::vector<int> early_signals_;
  os::io_thread* io_ = nullptr;
  std::shared_ptr<boost::asio::posix::stream_descriptor> incoming_;
};

} // namespace troupe::launch
