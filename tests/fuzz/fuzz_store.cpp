#include "runtime/base/invariant.hpp"
#include "runtime/tcpstore/store_core.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

/// Bytes of several clients, in pieces; what must hold throws, which ends the process. The first
/// byte decides what is played: a crowd, or one client whose answers must not depend on how its
/// bytes are cut.
namespace {

using namespace troupe;
using namespace troupe::tcpstore;

constexpr std::size_t clients = 6;

bounds small() {
  bounds b;
  b.memory_max = 64u << 10;
  b.traffic_max = 64u << 10;
  b.answer_max = 16u << 10;
  b.answers_pause = 2u << 10;
  b.held_back_max = 4u << 10;
  b.clients_max = clients - 1; // one too many will come
  return b;
}

/// A store and its connections, whose owner does as the core says.
class crowd {
 public:
  void strike(std::uint8_t what, std::string_view bytes) {
    auto& who = clients_[what % clients];
    if (!who) {
      who = core_.connected();
      invariant(who.has_value() || core_.clients() == bounds_.clients_max, "refused without need");
      if (!who)
        return;
    }
    // Mostly a client speaks; or it leaves, or reads a part of what waits for it.
    if (what >= 240) {
      leave(who);
    } else if (what >= 200) {
      core_.sent(*who, core_.answers(*who).size() / 2);
    } else if (core_.wants_input(*who)) {
      core_.received(*who, bytes);
    }
    follow(what % 2 == 0);
  }

  void end() {
    for (auto& who : clients_)
      leave(who);
    follow(true);
    invariant(core_.traffic() == 0, "something is left on its way");
    invariant(core_.clients() == 0, "a client is left");
  }

 private:
  void leave(std::optional<client_id>& who) {
    if (who)
      core_.disconnected(*who);
    who.reset();
  }

  void follow(bool reads) {
    for (;;) {
      const auto& changes = core_.take_changes();
      for (const auto& c : changes.closed) {
        invariant(!c.why.empty(), "closed without a reason");
        for (auto& who : clients_)
          if (who == c.who)
            leave(who);
      }
      if (changes.answered.empty() && changes.resumed.empty())
        break;
      const auto answered = changes.answered;
      for (const auto a : answered)
        for (auto& who : clients_)
          if (who == a && reads)
            core_.sent(a, core_.answers(a).size());
    }
    invariant(core_.memory() <= bounds_.memory_max, "too much memory");
    invariant(core_.traffic() <= bounds_.traffic_max, "too much traffic");
    for (const auto& who : clients_)
      if (who)
        invariant(core_.answers(*who).size() <=
                      bounds_.answers_pause + bounds_.answer_max + clients * 64,
                  "answers without end");
  }

  bounds bounds_ = small();
  store_core core_{bounds_};
  std::array<std::optional<client_id>, clients> clients_;
};

/// Everything one client hears, and why it was sent away if it was.
std::string heard(std::string_view bytes, std::size_t piece) {
  store_core core;
  const auto who = core.connected().value();
  std::string all;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    core.received(who, bytes.substr(at, piece));
    const auto& changes = core.take_changes();
    all += core.answers(who);
    core.sent(who, core.answers(who).size());
    if (!changes.closed.empty())
      return all + "; " + changes.closed.front().why;
  }
  return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (size < 2)
    return 0;
  if (data[0] % 4 == 0) {
    const auto bytes = all.substr(2);
    invariant(heard(bytes, size) == heard(bytes, 1 + data[1] % 16), "the cuts show");
    return 0;
  }
  crowd c;
  for (auto rest = all.substr(1); rest.size() >= 2;) {
    const auto what = static_cast<std::uint8_t>(rest[0]);
    const auto length = static_cast<std::uint8_t>(rest[1]);
    c.strike(what, rest.substr(2, length));
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 2u + length));
  }
  c.end();
  return 0;
}
