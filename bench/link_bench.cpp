// Speed and size of the node link on this machine, over loopback. Prints one line per figure.
//
//     link_bench [links [certificate key authority]]
//
// With certificates (their names: node-0 and troupe-master) the links are encrypted.

#include "messages/kinds.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "runtime/os/net/descriptor_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <vector>

using namespace troupe;
using clock_type = std::chrono::steady_clock;

namespace {

messages::msg<messages::Hello> hello() {
  return messages::build<messages::Hello>(
      {"node-0/uplink"}, [](messages::Hello::Builder out) { out.setNode("node-0"); });
}

messages::any_msg small() {
  return messages::build<messages::Finished>({"bench"}, [](messages::Finished::Builder) {}).any();
}

messages::any_msg large(std::size_t size) {
  const std::string filler(8'000, 'x');
  return messages::build<messages::Failed>({"bench"},
                                           [&](messages::Failed::Builder out) {
                                             auto list = out.initFailures(
                                                 static_cast<unsigned>(size / filler.size() + 1));
                                             for (auto failure : list)
                                               failure.setMessage(filler);
                                           })
      .any();
}

/// Lets the main thread wait for what the I/O threads do.
class gate {
 public:
  void pass() {
    const std::lock_guard lock(mutex_);
    ++passed_;
    changed_.notify_one();
  }
  void wait_for(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, n] { return passed_ >= n; });
    passed_ -= n;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t passed_ = 0;
};

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

/// Both ends of the links, each with its own I/O thread, as in two processes.
struct ends {
  os::io_thread master_io;
  os::io_thread node_io;
  std::unique_ptr<os::asio_transport> master;
  std::unique_ptr<os::asio_transport> node;
  std::unique_ptr<ports::listener> listener;
  std::mutex mutex;
  std::vector<ports::connection_ptr> accepted;
  std::vector<ports::connection_ptr> dialled;
  gate at_master;
  gate at_node;

  explicit ends(const os::transport_options& options) {
    master = std::move(*os::asio_transport::make(master_io, options));
    node = std::move(*os::asio_transport::make(node_io, options));
    listener = std::move(*master->listen({"127.0.0.1", 0}, [this](ports::peer p) {
      const std::lock_guard lock(mutex);
      accepted.push_back(std::move(p.link));
    }));
  }

  void dial(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      node->dial(listener->where(), hello(), [this](result<ports::connection_ptr> link) {
        if (!link) {
          fmt::print(stderr, "{}\n", link.error().what);
          std::exit(1);
        }
        {
          const std::lock_guard lock(mutex);
          dialled.push_back(std::move(*link));
        }
        at_node.pass();
      });
    at_node.wait_for(n);
  }
};

ports::connection_events events(const ports::connection_ptr& link,
                                std::function<void(messages::any_msg)> on_message) {
  const std::weak_ptr<ports::connection> weak = link;
  return {[weak, then = std::move(on_message)](messages::any_msg m) {
            if (const auto alive = weak.lock())
              alive->taken();
            then(std::move(m));
          },
          [](const ports::link_ending&) {}};
}

void measure_round_trips(ends& e) {
  auto& master = *e.accepted[0];
  auto& node = *e.dialled[0];
  master.open(
      events(e.accepted[0], [&master](messages::any_msg m) { (void)master.send(std::move(m)); }));
  node.open(events(e.dialled[0], [&e](const messages::any_msg&) { e.at_node.pass(); }));
  const auto question = small();
  std::vector<double> micros;
  for (int i = 0; i < 20'000; ++i) {
    const auto begin = clock_type::now();
    (void)node.send(question);
    e.at_node.wait_for(1);
    micros.push_back(milliseconds_of(clock_type::now() - begin) * 1000.0);
  }
  std::sort(micros.begin(), micros.end());
  fmt::print("round trip of {} bytes: p50 {:.0f} µs, p99 {:.0f} µs\n", question.size_bytes(),
             micros[micros.size() / 2], micros[micros.size() * 99 / 100]);
}

void measure_rate(ends& e) {
  constexpr std::size_t count = 400'000;
  auto& node = *e.dialled[1];
  std::atomic<std::size_t> seen{0};
  e.accepted[1]->open(events(e.accepted[1], [&seen, &e](const messages::any_msg&) {
    if (++seen % count == 0)
      e.at_master.pass();
  }));
  const auto one = small();
  const auto begin = clock_type::now();
  for (std::size_t i = 0; i < count; ++i) {
    // A burst may not exceed the send queue.
    while (i - seen.load() > 100'000)
      std::this_thread::yield();
    if (!node.send(one))
      std::exit(1);
  }
  e.at_master.wait_for(1);
  const double seconds = milliseconds_of(clock_type::now() - begin) / 1000.0;
  fmt::print("one way: {:.0f} messages/s of {} bytes\n", count / seconds, one.size_bytes());
}

void measure_bulk(ends& e) {
  constexpr std::size_t count = 128;
  auto& node = *e.dialled[2];
  std::atomic<std::size_t> seen{0};
  e.accepted[2]->open(events(e.accepted[2], [&seen, &e](const messages::any_msg&) {
    if (++seen == count)
      e.at_master.pass();
  }));
  const auto one = large(4u << 20);
  const auto begin = clock_type::now();
  for (std::size_t i = 0; i < count; ++i) {
    while (i - seen.load() > 8)
      std::this_thread::yield();
    if (!node.send(one))
      std::exit(1);
  }
  e.at_master.wait_for(1);
  const double seconds = milliseconds_of(clock_type::now() - begin) / 1000.0;
  fmt::print("bulk: {:.0f} MB/s in messages of 4 MiB\n",
             static_cast<double>(count * one.size_bytes()) / 1e6 / seconds);
}

} // namespace

int main(int argc, char** argv) {
  const std::size_t links = argc > 1 ? std::stoul(argv[1]) : 1'000;
  const auto files = os::raise_descriptor_limit(2 * links + 100);
  if (!files || *files < 2 * links + 100) {
    fmt::print(stderr, "not enough file descriptors for {} links\n", links);
    return 1;
  }
  os::transport_options options;
  options.link.dial_within = 60s;
  options.link.handshake_within = 60s;
  options.unproven_max = links;
  if (argc > 4)
    options.proven_by = os::tls_files{argv[2], argv[3], argv[4]};

  ends e(options);
  e.dial(3);
  const auto before_kib = resident_kib();
  const auto begin = clock_type::now();
  e.dial(links);
  fmt::print("{} links made in {:.0f} ms\n", links, milliseconds_of(clock_type::now() - begin));
  fmt::print("memory of a link, both ends: {:.1f} kB\n",
             static_cast<double>(resident_kib() - before_kib) * 1.024 / static_cast<double>(links));
  measure_round_trips(e);
  measure_rate(e);
  measure_bulk(e);
  return 0;
}
