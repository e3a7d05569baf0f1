#include "tests/sim/wire.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

wire::wire(world& of, const weather& w, std::function<bool()> held)
    : world_(of), weather_(w), held_(std::move(held)) {}

void wire::push(const std::vector<link::out_frame>& frames) {
  std::vector<std::vector<kj::byte>> raw;
  for (const auto& f : frames) {
    if (world_.random.chance(weather_.frame_lost)) {
      world_.write("-", "! a frame is lost");
      continue;
    }
    raw.emplace_back();
    link::append(raw.back(), f);
    if (world_.random.chance(weather_.frame_repeated)) {
      world_.write("-", "! a frame is repeated");
      raw.push_back(raw.back());
    }
    if (raw.size() > 1 && world_.random.chance(weather_.frame_overtaken)) {
      world_.write("-", "! a frame overtakes another");
      std::swap(raw[raw.size() - 1], raw[raw.size() - 2]);
    }
  }
  std::vector<kj::byte> stream;
  for (const auto& f : raw)
    stream.insert(stream.end(), f.begin(), f.end());
  push_bytes(std::move(stream));
}

void wire::push_bytes(std::vector<kj::byte> raw) {
  if (finished_)
    return;
  std::size_t from = 0;
  while (from < raw.size()) {
    // Mostly as it was written, sometimes in pieces that respect no frame.
    const auto rest = raw.size() - from;
    const auto size = world_.random.chance(0.2) ? 1 + world_.random.below(rest) : rest;
    chunk c;
    c.bytes.assign(raw.begin() + static_cast<std::ptrdiff_t>(from),
                   raw.begin() + static_cast<std::ptrdiff_t>(from + size));
    from += size;
    const bool repeated = world_.random.chance(weather_.chunk_repeated);
    if (repeated)
      fly(c);
    fly(std::move(c));
    if (flight_.size() > 1 && world_.random.chance(weather_.chunk_overtaken))
      std::swap(flight_[flight_.size() - 1].bytes, flight_[flight_.size() - 2].bytes);
  }
}

void wire::finish(tail how) {
  if (std::exchange(finished_, true))
    return;
  fly(chunk{{}, {}, how});
}

void wire::cut() {
  finished_ = true;
  std::size_t flying = 0;
  for (const auto& c : flight_)
    flying += c.bytes.size();
  auto keep = static_cast<std::size_t>(world_.random.below(flying + 1));
  for (auto& c : flight_) {
    const auto kept = std::min(keep, c.bytes.size());
    outstanding_ -= c.bytes.size() - kept;
    c.bytes.resize(kept);
    c.end = tail::none;
    keep -= kept;
  }
  fly(chunk{{}, {}, tail::reset});
}

void wire::refuse(bool silently) {
  refuses_ = true;
  silent_ = silently;
  arrived_.clear();
}

void wire::release() {
  last_arrival_ = world_.events.now();
  for (auto& c : flight_) {
    c.arrives = std::max({c.arrives, last_arrival_, world_.events.now()}) +
                world_.between(weather_.delay_min, weather_.delay_max);
    last_arrival_ = c.arrives;
  }
  arm();
}

void wire::fly(chunk c) {
  auto delay = world_.between(weather_.delay_min, weather_.delay_max);
  const auto start = std::max(world_.events.now() + delay, last_arrival_);
  c.arrives = start;
  if (weather_.bytes_per_ms > 0)
    c.arrives += std::chrono::microseconds(c.bytes.size() * 1'000 / weather_.bytes_per_ms);
  last_arrival_ = c.arrives;
  outstanding_ += c.bytes.size();
  flight_.push_back(std::move(c));
  arm();
}

void wire::arm() {
  if (armed_ || flight_.empty())
    return;
  armed_ = true;
  world_.events.at(flight_.front().arrives, [self = shared_from_this()] {
    self->armed_ = false;
    self->land();
  });
}

void wire::land() {
  if (held_())
    return; // release() goes on
  bool arrived = false;
  while (!flight_.empty() && flight_.front().arrives <= world_.events.now()) {
    auto c = std::move(flight_.front());
    flight_.pop_front();
    world_.story.mix(c.bytes.size());
    if (refuses_) {
      outstanding_ -= c.bytes.size();
      if (const auto other = back.lock(); other && !silent_ && !c.bytes.empty())
        other->finish(tail::reset);
      continue;
    }
    arrived_.insert(arrived_.end(), c.bytes.begin(), c.bytes.end());
    if (c.end != tail::none && tail_arrived_ == tail::none)
      tail_arrived_ = c.end;
    arrived = true;
  }
  arm();
  if (arrived && on_arrival)
    on_arrival();
}

std::vector<kj::byte> wire::take(std::size_t most) {
  const auto n = std::min(most, arrived_.size());
  const auto last = arrived_.begin() + static_cast<std::ptrdiff_t>(n);
  std::vector<kj::byte> taken(arrived_.begin(), last);
  arrived_.erase(arrived_.begin(), last);
  outstanding_ -= n;
  if (n > 0 && on_room)
    on_room();
  return taken;
}

} // namespace troupe::sim
