#include "runtime/os/links/socket_worker_links.hpp"

#include "messages/limits.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/os/links/limits.hpp"
#include "runtime/os/links/record_files.hpp"
#include "runtime/os/process/packet.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::os {

namespace asio = boost::asio;
using ports::worker_link;

namespace {

constexpr auto component = "node_supervisor/worker_channel";

} // namespace

/// All of it on the I/O thread.
class socket_worker_links::server : public std::enable_shared_from_this<server> {
  struct connection {
    connection(asio::io_context& io, int socket, std::int32_t process)
        : descriptor(io, socket), turn(io), pid(process) {}

    asio::posix::stream_descriptor descriptor;
    asio::steady_timer turn;
    std::int32_t pid;
    std::deque<messages::any_msg> queue;
    std::size_t queued = 0;
    bool writes = false;
  };

 public:
  server(asio::io_context& io, unique_fd listening, worker_links_options options)
      : io_(io), listening_(io, listening.release()), pause_(io), options_(std::move(options)) {}

  void listen(ports::worker_link_events events) {
    events_ = std::move(events);
    const bool first = !std::exchange(listens_, true);
    close_all();
    if (first)
      accept();
  }

  void send(worker_link to, const messages::any_msg& m) {
    const auto found = connections_.find(to);
    if (found == connections_.end())
      return;
    auto& c = *found->second;
    c.queue.push_back(m);
    c.queued += m.size_bytes();
    if (c.queued > limits::worker_queue_max)
      return leave(to, "it does not read what it is sent");
    if (!c.writes)
      write(to);
  }

  void end(worker_link link) {
    const auto found = connections_.find(link);
    if (found == connections_.end())
      return;
    close(*found->second);
    connections_.erase(found);
    events_.on_closed(link);
  }

  void shut() {
    events_ = {};
    listens_ = false;
    close_all();
    boost::system::error_code ignored;
    listening_.close(ignored);
    pause_.cancel();
  }

 private:
  /// What still waits for it keeps it in memory.
  static void close(connection& c) {
    boost::system::error_code ignored;
    c.descriptor.close(ignored);
    c.turn.cancel();
  }

  void close_all() {
    for (const auto& [link, c] : connections_)
      close(*c);
    connections_.clear();
  }

  void accept() {
    listening_.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& e) {
                            if (!e && self->listens_)
                              self->take_in_all();
                          });
  }

  void take_in_all() {
    for (;;) {
      unique_fd socket(
          ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket) {
        take_in(std::move(socket));
        continue;
      }
      if (errno == EAGAIN)
        return accept();
      if (errno == EINTR || errno == ECONNABORTED)
        continue;
      // Out of descriptors or memory, which others may give back.
      pause_.expires_after(limits::accept_backoff);
      return pause_.async_wait([self = shared_from_this()](const boost::system::error_code& e) {
        if (!e && self->listens_)
          self->accept();
      });
    }
  }

  void take_in(unique_fd socket) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
      return;
    if (peer.uid != ::geteuid() && peer.uid != 0)
      return tell_away(peer.pid, fmt::format("it belongs to user {}", peer.uid));
    if (connections_.size() >= options_.processes * limits::worker_links_for_each)
      return tell_away(peer.pid,
                       fmt::format("there are {} connections already", connections_.size()));
    const auto link = ++last_link_;
    connections_[link] = std::make_shared<connection>(io_, socket.release(), peer.pid);
    events_.on_arrived({link, peer.pid, static_cast<std::int32_t>(::getsid(peer.pid))});
    read(link);
  }

  void read(worker_link link) {
    const auto c = connections_.at(link);
    c->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                             [self = shared_from_this(), link, c](const auto& e) {
                               if (!e && self->is_there(link, c))
                                 self->read_some(link, *c);
                             });
  }

  void read_some(worker_link link, connection& c) {
    for (std::size_t i = 0; i < limits::worker_packets_at_once; ++i) {
      const auto got =
          receive_packet(c.descriptor.native_handle(), false, room_.data(), room_.size());
      if (!got && errno == EAGAIN)
        return read(link);
      if (!got)
        return end(link);
      if (!got->what)
        return leave(link, "what it says is no message: " + got->what.error().what);
      events_.on_message(link, *got->what);
    }
    c.turn.expires_after(limits::worker_packets_pause);
    c.turn.async_wait([self = shared_from_this(), link](const boost::system::error_code& e) {
      if (!e && self->connections_.count(link) != 0)
        self->read(link);
    });
  }

  void write(worker_link link) {
    const auto c = connections_.at(link);
    c->writes = false;
    while (!c->queue.empty()) {
      if (!send_packet(c->descriptor.native_handle(), c->queue.front(), -1, false)) {
        if (errno != EAGAIN)
          return end(link);
        c->writes = true;
        return c->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                        [self = shared_from_this(), link, c](const auto& e) {
                                          if (!e && self->is_there(link, c))
                                            self->write(link);
                                        });
      }
      c->queued -= c->queue.front().size_bytes();
      c->queue.pop_front();
    }
  }

  bool is_there(worker_link link, const std::shared_ptr<connection>& c) const {
    const auto found = connections_.find(link);
    return found != connections_.end() && found->second == c;
  }

  void leave(worker_link link, const std::string& why) {
    tell_away(connections_.at(link)->pid, why);
    end(link);
  }

  void tell_away(std::int32_t pid, const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_since_ >= limits::refusals_counted_for) {
      told_since_ = now;
      told_ = 0;
    }
    if (++told_ <= limits::refusals_told)
      options_.log(
          component,
          {log::level::warning,
           "worker_turned_away",
           fmt::format("process {} is turned away from the workers' channel: {}", pid, why),
           {{"pid", std::int64_t{pid}}}});
  }

  asio::io_context& io_;
  asio::posix::stream_descriptor listening_;
  asio::steady_timer pause_;
  worker_links_options options_;
  ports::worker_link_events events_;
  bool listens_ = false;
  worker_link last_link_ = 0;
  std::map<worker_link, std::shared_ptr<connection>> connections_;
  std::array<unsigned char, limits::worker_packet_max> room_{};
  std::chrono::steady_clock::time_point told_since_;
  std::uint64_t told_ = 0;
};

result<std::shared_ptr<socket_worker_links>>
socket_worker_links::open(io_thread& io, io_thread& slow, int listening,
                          worker_links_options options) {
  unique_fd own(::fcntl(listening, F_DUPFD_CLOEXEC, 0));
  if (!own)
    return failure(errc::unavailable,
                   fmt::format("the workers' channel cannot be opened: {}", std::strerror(errno)));
  auto records = options.records;
  auto served = std::make_shared<server>(io.context(), std::move(own), std::move(options));
  return std::shared_ptr<socket_worker_links>(
      new socket_worker_links(std::move(served), io, slow, std::move(records)));
}

socket_worker_links::socket_worker_links(std::shared_ptr<server> s, io_thread& io, io_thread& slow,
                                         std::string records)
    : server_(std::move(s)), io_(io), slow_(slow), records_(std::move(records)) {}

socket_worker_links::~socket_worker_links() {
  asio::post(io_.context(), [s = server_] { s->shut(); });
}

void socket_worker_links::listen(ports::worker_link_events events) {
  asio::post(io_.context(),
             [s = server_, events = std::move(events)]() mutable { s->listen(std::move(events)); });
}

void socket_worker_links::send(worker_link to, const messages::any_msg& m) {
  asio::post(io_.context(), [s = server_, to, m] { s->send(to, m); });
}

void socket_worker_links::close(worker_link link) {
  asio::post(io_.context(), [s = server_, link] { s->end(link); });
}

void socket_worker_links::keep(std::uint64_t dump, std::vector<ports::flight_record> records,
                               std::function<void(result<std::string>)> done) {
  asio::post(slow_.context(),
             [directory = records_, dump, records = std::move(records), done = std::move(done)] {
               done(write_records(directory, dump, records));
             });
}

} // namespace troupe::os
