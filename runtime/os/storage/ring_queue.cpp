#include "runtime/os/storage/ring_queue.hpp"

#include <fmt/format.h>
#include <liburing.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace troupe::os {

namespace {

class uring final : public write_queue {
 public:
  ~uring() override {
    if (open_)
      ::io_uring_queue_exit(&ring_);
  }

  int open(unsigned depth) {
    const int answer = ::io_uring_queue_init(depth, &ring_, 0);
    open_ = answer == 0;
    return answer;
  }

  /// Kernels before 5.6 have the ring and not this operation.
  bool can_write() {
    io_uring_probe* probe = ::io_uring_get_probe_ring(&ring_);
    if (probe == nullptr)
      return false;
    const bool can = ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
    ::io_uring_free_probe(probe);
    return can;
  }

  int submit(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
             unsigned tag) override {
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return -EINVAL;
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr)
      return -EBUSY;
    ::io_uring_prep_write(entry, file, from, static_cast<unsigned>(bytes), at);
    ::io_uring_sqe_set_data64(entry, tag);
    // Interrupted, or short of memory for a moment: the entry is still in the queue.
    for (int tries = 1;; ++tries) {
      const int answer = ::io_uring_submit(&ring_);
      if ((answer != -EINTR && answer != -EAGAIN) || tries == tries_max)
        return answer < 0 ? answer : 0;
    }
  }

  written wait() override {
    io_uring_cqe* ended = nullptr;
    while (true) {
      const int answer = ::io_uring_wait_cqe(&ring_, &ended);
      if (answer == 0)
        break;
      if (answer != -EINTR && answer != -EAGAIN)
        return {write_queue::none, answer};
    }
    const written told{static_cast<unsigned>(::io_uring_cqe_get_data64(ended)), ended->res};
    ::io_uring_cqe_seen(&ring_, ended);
    return told;
  }

 private:
  static constexpr int tries_max = 1'000;
  io_uring ring_{};
  bool open_ = false;
};

} // namespace

std::unique_ptr<write_queue> ring_queue(unsigned depth, std::string& why_not) {
  auto ring = std::make_unique<uring>();
  if (const int answer = ring->open(depth); answer < 0) {
    why_not = fmt::format("no io_uring here: {}", std::strerror(-answer));
    return nullptr;
  }
  if (!ring->can_write()) {
    why_not = "this kernel's io_uring cannot write";
    return nullptr;
  }
  return ring;
}

} // namespace troupe::os
