#include "runtime/os/memory/pinned_part.hpp"

#include "runtime/os/memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <liburing.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace troupe::os;

constexpr std::uint64_t mib = 1u << 20;

/// A driver that only lists what it would have pinned.
struct listed {
  std::vector<std::pair<char*, std::uint64_t>> pinned;
  std::vector<char*> unpinned;
  bool refuses = false;

  pinning as_pinning() {
    return {[this](char* begin, std::uint64_t bytes) {
              pinned.emplace_back(begin, bytes);
              return !refuses;
            },
            [this](char* begin) { unpinned.push_back(begin); }};
  }
};

/// A device that knows memory by its pages, as a driver does: the kernel pins the buffers that are
/// registered with a ring, and writes to those pages whatever is mapped there by then.
class page_device {
 public:
  page_device() { usable_ = io_uring_queue_init(4, &ring_, 0) == 0; }
  ~page_device() {
    if (usable_)
      io_uring_queue_exit(&ring_);
  }
  page_device(const page_device&) = delete;
  page_device& operator=(const page_device&) = delete;

  bool usable() const { return usable_; }
  bool pin(char* begin, std::uint64_t bytes) {
    const iovec whole{begin, bytes};
    return io_uring_register_buffers(&ring_, &whole, 1) == 0;
  }
  void unpin() { io_uring_unregister_buffers(&ring_); }

  /// Puts a text where the pages were that were pinned as this address.
  bool write(char* to, const std::string& text) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0)
      return false;
    const auto count = static_cast<ssize_t>(text.size());
    bool done = ::write(ends[1], text.data(), text.size()) == count;
    auto* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read_fixed(entry, ends[0], to, static_cast<unsigned>(text.size()), 0, 0);
    io_uring_cqe* answer = nullptr;
    done = done && io_uring_submit(&ring_) == 1 && io_uring_wait_cqe(&ring_, &answer) == 0 &&
           answer->res == count;
    if (answer != nullptr)
      io_uring_cqe_seen(&ring_, answer);
    close(ends[0]);
    close(ends[1]);
    return done;
  }

 private:
  io_uring ring_{};
  bool usable_ = false;
};

} // namespace

TEST_CASE("the end of what is used is not pinned") {
  listed driver;
  std::array<char, 1> memory{};
  pinned_part part;
  for (const std::uint64_t used : {0 * mib, 1 * mib, 4 * mib - 1}) {
    CHECK(part.pin(memory.data(), used, driver.as_pinning()));
    CHECK(part.bytes() == 0);
  }
  CHECK(driver.pinned.empty());
  CHECK(part.pin(memory.data(), 101 * mib, driver.as_pinning()));
  CHECK(part.bytes() == 98 * mib);
}

TEST_CASE("it is pinned again where it has moved, or where much is not pinned") {
  listed driver;
  std::array<char, 2> memory{};
  pinned_part part;
  CHECK(part.pin(memory.data(), 100 * mib, driver.as_pinning()));
  CHECK(part.pin(memory.data(), 100 * mib, driver.as_pinning()));
  CHECK(part.pin(memory.data(), 130 * mib, driver.as_pinning()));
  CHECK(driver.pinned.size() == 1);
  CHECK(part.pin(memory.data(), 134 * mib, driver.as_pinning()));
  CHECK(part.bytes() == 132 * mib);
  CHECK(part.pin(memory.data() + 1, 134 * mib, driver.as_pinning()));
  CHECK(driver.pinned.size() == 3);
  CHECK(driver.unpinned == std::vector<char*>{memory.data(), memory.data()});
}

TEST_CASE("what is cut off is not pinned any more") {
  listed driver;
  std::array<char, 1> memory{};
  {
    pinned_part part;
    CHECK(part.pin(memory.data(), 100 * mib, driver.as_pinning()));
    part.cut(98 * mib);
    CHECK(driver.unpinned.empty());
    part.cut(98 * mib - 1);
    CHECK(driver.unpinned.size() == 1);
    CHECK(part.bytes() == 0);
    CHECK(part.pin(memory.data(), 100 * mib, driver.as_pinning()));
  }
  CHECK(driver.unpinned.size() == 2); // it is not forgotten
}

TEST_CASE("a driver that refuses has pinned nothing") {
  listed driver;
  driver.refuses = true;
  std::array<char, 1> memory{};
  {
    pinned_part part;
    CHECK_FALSE(part.pin(memory.data(), 100 * mib, driver.as_pinning()));
    CHECK(part.bytes() == 0);
  }
  CHECK(driver.unpinned.empty());
}

TEST_CASE("what a device writes to pinned memory is in the file, however the file's end moved") {
  page_device device;
  auto memory = shared_memory::create("troupe-pinned-test", 16 * mib);
  REQUIRE(memory);
  const std::atomic<bool> go_on{false};
  REQUIRE(memory->populate(16 * mib, go_on));
  const pinning by{[&device](char* begin, std::uint64_t bytes) { return device.pin(begin, bytes); },
                   [&device](char*) { device.unpin(); }};
  pinned_part part;
  if (!device.usable() || !part.pin(memory->data(), 15 * mib, by)) {
    MESSAGE("this system pins nothing for io_uring: not tried");
    return;
  }
  REQUIRE(part.bytes() == 12 * mib);
  const std::string text = "from a device";
  // Snapshots of other sizes, in the middle of pages of either size.
  for (const std::uint64_t snapshot : {15 * mib, 13 * mib + 5000, 12 * mib, 9 * mib, 16 * mib}) {
    CAPTURE(snapshot);
    part.cut(snapshot);
    REQUIRE(memory->show(snapshot));
    REQUIRE(memory->show(16 * mib));
    REQUIRE(part.pin(memory->data(), 15 * mib, by));
    REQUIRE(part.bytes() == 12 * mib);
    for (const std::uint64_t at : {std::uint64_t{0}, 7 * mib + 100, 12 * mib - text.size()}) {
      std::fill_n(memory->data() + at, text.size(), '.');
      REQUIRE(device.write(memory->data() + at, text));
      CHECK(std::string(memory->data() + at, text.size()) == text);
    }
  }
}
