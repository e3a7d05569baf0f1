#include "runtime/os/storage/block_writer.hpp"

#include "runtime/base/invariant.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe::os {

namespace {

/// A disk that takes nothing so often in a row will not take it.
constexpr unsigned fruitless_max = 64;

} // namespace

int plain_queue::submit(int file, const std::byte* from, std::size_t bytes, std::uint64_t at,
                        unsigned tag) {
  ended_.push_back({tag, files_.pwrite(file, from, bytes, at)});
  return 0;
}

written plain_queue::wait() {
  const written first = ended_.front();
  ended_.erase(ended_.begin());
  return first;
}

block_writer::block_writer(write_queue& queue, plan how)
    : queue_(queue), how_(how), under_way_(how.depth) {
  invariant(how.depth > 0 && how.block > 0 && how.block % direct_alignment == 0,
            "blocks are whole pages");
  for (unsigned tag = how.depth; tag > 0; --tag)
    free_.push_back(tag - 1);
}

write_outcome block_writer::write(int file, ports::bytes_view bytes,
                                  const std::atomic<bool>& stop) {
  while (true) {
    const bool goes_on = outcome_.wrong == 0 && !outcome_.stopped && next_ < bytes.size;
    if (goes_on && stop.load(std::memory_order_relaxed)) {
      outcome_.stopped = true;
    } else if (goes_on && !free_.empty()) {
      const auto from = next_;
      start(file, next_piece(bytes));
      outcome_.crc32 = libdeflate_crc32(outcome_.crc32, bytes.data + from, next_ - from);
    } else if (free_.size() < how_.depth && !outcome_.queue_failed) {
      take_one(file);
    } else {
      return outcome_;
    }
  }
}

/// The last, incomplete page of a direct write comes from memory of our own, filled up with zeros.
block_writer::piece block_writer::next_piece(ports::bytes_view bytes) {
  const auto at = next_;
  const auto left = bytes.size - at;
  auto size = std::min<std::size_t>(how_.block, left);
  if (!how_.direct || size % direct_alignment == 0) {
    next_ += size;
    return {bytes.data + at, size, at};
  }
  if (size > direct_alignment) {
    size -= size % direct_alignment;
    next_ += size;
    return {bytes.data + at, size, at};
  }
  std::memcpy(tail_.data(), bytes.data + at, size);
  next_ += size;
  return {tail_.data(), tail_.size(), at};
}

void block_writer::start(int file, piece p) {
  const unsigned tag = free_.back();
  free_.pop_back();
  under_way_[tag] = p;
  submit(file, tag);
}

void block_writer::submit(int file, unsigned tag) {
  const piece& p = under_way_[tag];
  if (const int answer = queue_.submit(file, p.from, p.bytes, p.at, tag); answer < 0) {
    outcome_.wrong = -answer;
    outcome_.queue_failed = true;
  }
}

/// Goes on with a piece of which only a part was written.
void block_writer::take_one(int file) {
  const auto [tag, answer] = queue_.wait();
  if (tag == write_queue::none) {
    outcome_.wrong = static_cast<int>(-answer);
    outcome_.queue_failed = true;
    return;
  }
  piece& p = under_way_[tag];
  std::size_t done = answer > 0 ? static_cast<std::size_t>(answer) : 0;
  if (how_.direct && done < p.bytes)
    done -= done % direct_alignment;
  p.fruitless = done > 0 ? 0 : p.fruitless + 1;
  const bool again = answer >= 0 || answer == -EINTR || answer == -EAGAIN;
  if (!again || p.fruitless > fruitless_max) {
    if (outcome_.wrong == 0)
      outcome_.wrong = again ? EIO : static_cast<int>(-answer);
    free_.push_back(tag);
  } else if (done == p.bytes || outcome_.wrong != 0 || outcome_.stopped) {
    free_.push_back(tag);
  } else {
    p.from += done;
    p.bytes -= done;
    p.at += done;
    submit(file, tag);
  }
}

} // namespace troupe::os
