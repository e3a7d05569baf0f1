#include "launch/wiring/topology_file.hpp"

#include "runtime/os/read_at_most.hpp"
#include "topology/limits.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <pthread.h>

namespace troupe::launch {

namespace {

constexpr auto look_every = 500ms;

/// What a file system says of a file that may be there in a moment.
bool may_pass(int why) {
  return why == ENOENT || why == ESTALE || why == EIO || why == ETIMEDOUT;
}

tl::unexpected<error> refused(int why) {
  return failure(may_pass(why) ? errc::unavailable : errc::refused,
                 why == ENOENT ? "there is no such file" : std::strerror(why));
}

} // namespace

result<topology::topology_read> read_topology_file(const topology_settings& from) {
  auto text = os::read_at_most(from.file, limits::topology_text_max);
  if (!text && !from.content.empty())
    text = from.content;
  if (!text)
    return refused(text.error());
  return topology::read_topology(*text, from.label_keys);
}

struct topology_file::shared {
  topology_settings from;
  log::sink log;
  std::mutex mutex;
  std::condition_variable ends;
  bool ended = false;

  /// False: the source is gone.
  bool pause(duration d) {
    std::unique_lock lock(mutex);
    return !ends.wait_for(lock, d, [this] { return ended; });
  }

  void waits(const std::string& why) {
    const std::lock_guard lock(mutex);
    if (!ended)
      log("master/recovery",
          {log::level::notice,
           "topology_awaited",
           fmt::format("--topology {}: {}; the first start waits for it, up to {}", from.file, why,
                       troupe::in_words(from.wait)),
           {{"file", from.file}}});
  }

  result<topology::topology_read> look_until_complete() {
    const auto until = std::chrono::steady_clock::now() + from.wait;
    std::optional<std::string> wrong;
    for (bool first = true;; first = false) {
      auto read = read_topology_file(from);
      if (read)
        return read;
      const bool passes = read.error().code == errc::unavailable;
      const bool again = passes || wrong != read.error().what;
      if (!again)
        return read;
      if (passes && std::chrono::steady_clock::now() >= until) {
        read.error().what =
            fmt::format("{} (after {})", read.error().what, troupe::in_words(from.wait));
        return read;
      }
      if (passes && first)
        waits(read.error().what);
      wrong = passes ? std::nullopt : std::optional(read.error().what);
      if (!pause(look_every))
        return read;
    }
  }

  void run(const std::function<void(const actors::topology_answer&)>& done) {
    auto read = look_until_complete();
    actors::topology_answer answer{nullptr, from.file, {}};
    if (read) {
      answer.taken_for = topology::in_words(read->taken_for);
      answer.tree = std::make_shared<const topology::network_tree>(std::move(read->tree));
    } else {
      answer.tree = tl::make_unexpected(std::move(read.error()));
    }
    const std::lock_guard lock(mutex);
    if (!ended)
      done(answer);
  }
};

std::shared_ptr<actors::topology_source> topology_file::of(const topology_settings& from,
                                                           const log::sink& log) {
  return from.file.empty() ? nullptr : std::make_shared<topology_file>(from, log);
}

topology_file::topology_file(topology_settings from, log::sink log)
    : shared_(std::make_shared<shared>()) {
  shared_->from = std::move(from);
  shared_->log = std::move(log);
}

topology_file::~topology_file() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ended = true;
  shared_->ends.notify_all();
}

void topology_file::read(std::function<void(const actors::topology_answer&)> done) {
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([shared = shared_, done = std::move(done)] {
    pthread_setname_np(pthread_self(), "troupe-topology");
    shared->run(done);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace troupe::launch
