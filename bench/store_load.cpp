// Clients for a TCPStore server, ours or torch's, on loopback. Prints one figure.
//
//     store_load get|add|set PORT CLIENTS DEPTH SECONDS    operations per second; every client
//     sends
//                                                          DEPTH requests at once, reads the
//                                                          answers, and does it again
//     store_load floor CLIENTS DEPTH SECONDS               the same as add, against a server that
//     only
//                                                          counts bytes: what sockets alone allow
//     store_load connect PORT CLIENTS                      ms until all are connected and answered;
//     then
//                                                          stays until its input ends
//     store_load barrier PORT CLIENTS                      ms from the first arrival to the last
//     leave

#include "runtime/tcpstore/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe;
using tcpstore::operation;
using clock_type = std::chrono::steady_clock;

namespace {

/// A request with these texts in it.
std::string request(operation what, std::initializer_list<std::string_view> texts = {}) {
  std::string out(1, static_cast<char>(what));
  for (const auto t : texts)
    tcpstore::put_text(out, t);
  return out;
}

std::string request(operation what, std::string_view key, std::int64_t number) {
  auto out = request(what, {key});
  tcpstore::put_i64(out, number);
  return out;
}

std::string ping(std::uint32_t nonce) {
  auto out = request(operation::ping);
  tcpstore::put_u32(out, nonce);
  return out;
}

std::string hello() {
  auto out = request(operation::validate);
  tcpstore::put_u32(out, tcpstore::validation_magic);
  return out;
}

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

void send_all(int fd, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto n = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0)
      fail("the server closed a connection");
    at += static_cast<std::size_t>(n);
  }
}

void read_all(int fd, std::size_t size) {
  char chunk[4'096];
  while (size > 0) {
    const auto n = ::recv(fd, chunk, std::min(size, sizeof(chunk)), 0);
    if (n <= 0)
      fail("the server closed a connection");
    size -= static_cast<std::size_t>(n);
  }
}

int connected(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto to = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0)
    fail("cannot connect");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

/// Connected, and the server has said so.
std::vector<int> clients(std::uint16_t port, int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(connected(port));
    send_all(all.back(), hello() + ping(static_cast<std::uint32_t>(i)));
  }
  for (const int fd : all)
    read_all(fd, sizeof(std::uint32_t));
  return all;
}

double ms_since(clock_type::time_point then) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - then).count();
}

/// What a client sends at once, and how many bytes it hears in answer.
struct batch {
  std::string requests;
  std::size_t answers = 0;
};

batch batch_of(const std::string& kind, int client, int depth) {
  // All of one length.
  const auto key = fmt::format("/worker/attempt_0/default_pg/0//bench/{:05}", client);
  batch b;
  for (int i = 0; i < depth; ++i) {
    if (kind == "get") {
      b.requests += request(operation::get, {key});
      b.answers += 8 + 32;
    } else if (kind == "add") {
      b.requests += request(operation::add, key + "/n", 1);
      b.answers += 8;
    } else {
      b.requests += request(operation::set, {key, std::string(32, 'v')});
    }
  }
  if (kind == "set") { // which has no answer
    b.requests += ping(1);
    b.answers += 4;
  }
  return b;
}

double rate(const std::string& kind, const std::vector<int>& fds, int depth, double seconds) {
  const int poller = ::epoll_create1(0);
  std::vector<batch> batches;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    batches.push_back(batch_of(kind, static_cast<int>(i), depth));
    missing.push_back(batches[i].answers);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.u64 = i;
    ::epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &e);
    if (kind == "get") {
      send_all(fds[i], batch_of("set", static_cast<int>(i), 1).requests);
      read_all(fds[i], 4);
    }
    send_all(fds[i], batches[i].requests);
  }
  std::vector<char> buffer(1 << 20);
  std::vector<epoll_event> events(fds.size());
  std::uint64_t done = 0;
  const auto began = clock_type::now();
  while (ms_since(began) < seconds * 1'000) {
    const int n = ::epoll_wait(poller, events.data(), static_cast<int>(events.size()), 1'000);
    for (int k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(events[static_cast<std::size_t>(k)].data.u64);
      const auto got = ::recv(fds[i], buffer.data(), buffer.size(), 0);
      if (got <= 0)
        fail("the server closed a connection");
      missing[i] -= static_cast<std::size_t>(got);
      if (missing[i] > 0)
        continue;
      done += static_cast<std::uint64_t>(depth);
      missing[i] = batches[i].answers;
      send_all(fds[i], batches[i].requests);
    }
  }
  return static_cast<double>(done) / ms_since(began) * 1'000;
}

/// Answers eight bytes for every request of `size` bytes, and knows nothing.
[[noreturn]] void serve_floor(int listener, std::size_t size) {
  const int poller = ::epoll_create1(0);
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.fd = listener;
  ::epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
  std::vector<char> buffer(1 << 20);
  std::vector<std::size_t> left(65'536);
  for (;;) {
    epoll_event events[64];
    const int n = ::epoll_wait(poller, events, 64, -1);
    for (int k = 0; k < n; ++k) {
      const int fd = events[k].data.fd;
      if (fd == listener) {
        e.data.fd = ::accept(listener, nullptr, nullptr);
        ::epoll_ctl(poller, EPOLL_CTL_ADD, e.data.fd, &e);
        continue;
      }
      const auto got = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        ::close(fd);
        continue;
      }
      auto& rest = left[static_cast<std::size_t>(fd)];
      rest += static_cast<std::size_t>(got);
      send_all(fd, std::string(rest / size * 8, '\0'));
      rest %= size;
    }
  }
}

double floor_rate(int count, int depth, double seconds) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  auto at = loopback(0);
  socklen_t length = sizeof(at);
  ::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
  ::listen(listener, count);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  const auto size = batch_of("add", 10, 1).requests.size();
  std::thread([listener, size] { serve_floor(listener, size); }).detach();
  std::vector<int> fds;
  for (int i = 0; i < count; ++i)
    fds.push_back(connected(ntohs(at.sin_port)));
  return rate("add", fds, depth, seconds);
}

double barrier_ms(std::uint16_t port, int count) {
  const auto all = clients(port, count);
  const auto key = fmt::format("/barrier/{}", clock_type::now().time_since_epoch().count());
  const auto began = clock_type::now();
  for (const int fd : all)
    send_all(fd, request(operation::barrier, key, count));
  for (const int fd : all)
    read_all(fd, 1);
  return ms_since(began);
}

int run(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const auto number = [&a](std::size_t i) { return std::stoi(a.at(i)); };
  const auto& what = a.at(0);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (what == "floor") {
    fmt::print("{:.0f}\n", floor_rate(number(1), number(2), std::stod(a.at(3))));
    std::fflush(stdout);
    std::_Exit(0); // its server never ends
  }
  const auto port = static_cast<std::uint16_t>(number(1));
  if (what == "barrier") {
    fmt::print("{:.2f}\n", barrier_ms(port, number(2)));
  } else if (what == "connect") {
    const auto began = clock_type::now();
    const auto all = clients(port, number(2));
    fmt::print("{:.2f}\n", ms_since(began));
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  } else {
    fmt::print("{:.0f}\n", rate(what, clients(port, number(2)), number(3), std::stod(a.at(4))));
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "store_load: {}\n", e.what());
    return 1;
  }
}
