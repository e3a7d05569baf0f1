#include "worker/channel/channel.hpp"

#include "messages/limits.hpp"
#include "messages/worker_frames.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/os/process/unique_fd.hpp"
#include "worker/channel/fatal_signals.hpp"
#include "worker/channel/flight_record.hpp"
#include "worker/progress/own_page.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::worker {

namespace {

using namespace messages;

constexpr auto dial_again_after = 100ms;
constexpr auto dial_again_most = 10s;
/// A supervisor that does not read for so long is left; its successor is told anew.
constexpr auto send_within_s = 5;

std::atomic<std::int32_t> stacks_signal{0};
std::atomic<std::uint64_t> first_step_ns{0};
/// Those of the thread, for a fork: what is open there is no child's.
std::atomic<int> open_socket{-1}, wake{-1};

std::uint64_t number_in(const char* variable) {
  const char* said = std::getenv(variable);
  return said == nullptr ? 0 : std::strtoull(said, nullptr, 10);
}

/// TROUPE_FAILED_AT is in seconds of the same clock.
std::uint64_t since_failure(std::uint64_t now) {
  const char* said = std::getenv("TROUPE_FAILED_AT");
  const auto failed = said == nullptr ? 0.0 : std::strtod(said, nullptr) * 1e9;
  return failed > 0 && failed < static_cast<double>(now) ? now - static_cast<std::uint64_t>(failed)
                                                         : 0;
}

void on_step(std::uint64_t at_ns) {
  first_step_ns.store(at_ns);
  const std::uint64_t one = 1;
  (void)!::write(wake.load(), &one, sizeof one);
}

void in_forked_child() {
  for (auto* each : {&open_socket, &wake})
    if (const auto file = each->exchange(-1); file >= 0)
      ::close(file);
}

os::unique_fd dialled(const std::string& to) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (to.empty() || to.size() >= sizeof address.sun_path)
    return {};
  std::memcpy(address.sun_path, to.data(), to.size());
  const auto is_abstract = to.front() == '@';
  if (is_abstract)
    address.sun_path[0] = '\0';
  os::unique_fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto bytes = offsetof(sockaddr_un, sun_path) + to.size() + (is_abstract ? 0 : 1);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                           static_cast<socklen_t>(bytes)) != 0)
    return {};
  // An abstract name is anyone's to take.
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 ||
      (peer.uid != ::geteuid() && peer.uid != 0))
    return {};
  const timeval within{send_within_s, 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &within, sizeof within);
  return socket;
}

bool sent(int socket, const packet& what) {
  ssize_t done = -1;
  do
    done = ::send(socket, what.data(), what.size(), MSG_NOSIGNAL);
  while (done < 0 && errno == EINTR);
  return done == static_cast<ssize_t>(what.size());
}

class channel_thread {
 public:
  channel_thread(std::string to, worker_hello self)
      : to_(std::move(to)), self_(std::move(self)), frames_(self_.rank, self_.generation) {}

  void run() {
    back_off pause(dial_again_after, dial_again_most);
    for (;;) {
      os::unique_fd socket = dialled(to_);
      open_socket.store(socket.get());
      if (socket) {
        tell_fatal_signals_at(socket.get());
        if (says_hello(socket.get())) {
          pause.reset();
          talk(socket.get());
        }
        tell_fatal_signals_at(-1);
      }
      open_socket.store(-1);
      socket = {};
      std::this_thread::sleep_for(pause.next());
    }
  }

 private:
  bool says_hello(int socket) {
    self_.feeds = page().feeds_now();
    self_.stacks_signal = stacks_signal.load();
    self_.first_step_ns = first_step_ns.load();
    told_first_step_ = self_.first_step_ns != 0;
    return sent(socket, frames_.said(self_));
  }

  /// Until the connection ends.
  void talk(int socket) {
    for (;;) {
      std::array<pollfd, 2> both = {{{socket, POLLIN, 0}, {wake.load(), POLLIN, 0}}};
      if (::poll(both.data(), both.size(), -1) < 0 && errno != EINTR)
        return;
      if (both[1].revents != 0 && !tells_first_step(socket))
        return;
      if (both[0].revents != 0 && !answers(socket))
        return;
    }
  }

  bool tells_first_step(int socket) {
    std::uint64_t count = 0;
    (void)!::read(wake.load(), &count, sizeof count);
    if (told_first_step_)
      return true;
    told_first_step_ = true;
    const auto at = first_step_ns.load();
    return sent(socket, frames_.first_step(at, since_failure(at)));
  }

  bool answers(int socket) {
    const auto size = ::recv(socket, received_.data(), received_.size(), MSG_TRUNC);
    if (size < 0)
      return errno == EINTR;
    if (size == 0)
      return false;
    if (static_cast<std::size_t>(size) > received_.size())
      return true; // of a kind that this build does not know
    const auto request = heard(received_.data(), static_cast<std::size_t>(size));
    if (request.is_go_on)
      fatal_signal_is_answered();
    return !request.flight_record || tells_flight_record(socket, *request.flight_record);
  }

  bool tells_flight_record(int socket, std::uint64_t correlation) {
    const auto record = flight_record();
    if (!record)
      return sent(socket, frames_.no_flight_record(correlation, record.error().what));
    std::size_t at = 0;
    do {
      if (!sent(socket, frames_.flight_record(correlation, *record, at)))
        return false;
      at += limits::flight_record_piece;
    } while (at < record->size());
    return true;
  }

  std::string to_;
  worker_hello self_;
  worker_frames frames_;
  bool told_first_step_ = false;
  std::array<unsigned char, limits::worker_packet_max> received_{};
};

worker_hello described(const about_process& self) {
  worker_hello what;
  what.rank = static_cast<std::uint32_t>(number_in("RANK"));
  what.local_rank = static_cast<std::uint32_t>(number_in("LOCAL_RANK"));
  what.generation = number_in("TROUPE_GENERATION");
  what.pid = static_cast<std::uint32_t>(::getpid());
  what.version = TROUPE_VERSION;
  what.python = self.python;
  what.torch = self.torch;
  return what;
}

/// Signals are for the script's threads.
void begin_without_signals(std::unique_ptr<channel_thread> thread) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([own = std::move(thread)] {
      ::pthread_setname_np(::pthread_self(), "troupe-channel");
      own->run();
    }).detach();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace

void tells_stacks_on(std::int32_t signal) {
  stacks_signal.store(signal);
}

bool begin_channel(const about_process& self) {
  static std::atomic<bool> begun{false};
  const char* to = std::getenv("TROUPE_CHANNEL");
  if (to == nullptr || *to == '\0' || !has_page() || begun.exchange(true))
    return false;
  wake.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.load() < 0 || ::pthread_atfork(nullptr, nullptr, in_forked_child) != 0)
    return false;
  on_first_step(on_step);
  const auto self_said = described(self);
  watch_fatal_signals(worker_frames(self_said.rank, self_said.generation).fatal_signal());
  begin_without_signals(std::make_unique<channel_thread>(to, self_said));
  return true;
}

} // namespace troupe::worker
