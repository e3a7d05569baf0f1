#include "launch/keeper/kept_store_host.hpp"

#include "launch/keeper/limits.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/ports/process.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include <poll.h>

namespace troupe::launch {

using kind = packet::kind;

namespace {

using serving = std::shared_ptr<std::atomic<std::uint64_t>>;

/// Dropping it ends the process.
class kept_store final : public ports::open_store {
 public:
  kept_store(keeper_client& keeper, serving now, std::uint64_t process, std::uint16_t port)
      : keeper_(keeper), serving_(std::move(now)), process_(process), port_(port) {
    *serving_ = process;
  }
  ~kept_store() override {
    auto expected = process_;
    serving_->compare_exchange_strong(expected, 0);
    keeper_.send(about(kind::signal, process_, SIGKILL));
  }
  std::uint16_t port() const override { return port_; }

 private:
  keeper_client& keeper_;
  serving serving_;
  std::uint64_t process_;
  std::uint16_t port_;
};

/// Both ends write with as much room as they have; what does not fit is no machine's address.
bool put(char (&room)[sizeof packet::text], const std::string& text) {
  if (text.size() >= sizeof room)
    return false;
  std::memcpy(room, text.c_str(), text.size() + 1);
  return true;
}

std::optional<packet> answer_within(int socket, duration patience) {
  pollfd ready{socket, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  if (::poll(&ready, 1, static_cast<int>(ms)) <= 0)
    return std::nullopt;
  const auto got = receive_packet(socket, false);
  return got ? std::optional(got->what) : std::nullopt;
}

} // namespace

kept_store_host::kept_store_host(os::io_thread& io, keeper_client& keeper, log::sink log)
    : keeper_(keeper), serving_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  keeper_.listen(io, [now = serving_, log = std::move(log)](const packet& p) {
    auto process = p.process;
    if (p.what == kind::ended && process != 0 && now->compare_exchange_strong(process, 0))
      log("store", {log::level::error,
                    "store_ended",
                    fmt::format("the workers' store has ended with {}",
                                ports::to_string(ports::exit_status{p.signalled, p.number})),
                    {}});
  });
}

result<std::unique_ptr<ports::open_store>>
kept_store_host::open(const ports::store_options& options) {
  auto [ours, theirs] = packet_pair();
  if (!ours)
    return failure(errc::unavailable, fmt::format("the workers' store cannot be started: {}",
                                                  os::system_message(errno)));
  auto order = about(kind::open_store, keeper_.next_process(), options.port);
  order.label = static_cast<std::uint64_t>(options.reach);
  if (!put(order.text, options.address))
    return failure(errc::refused, "the address of the workers' store is too long");
  keeper_.send(order, theirs.get());
  theirs = {};
  const auto answer = answer_within(ours.get(), limits::store_opens_within);
  if (!answer) {
    keeper_.send(about(kind::signal, order.process, SIGKILL));
    return failure(errc::unavailable, "the workers' store did not start");
  }
  if (answer->number == 0)
    return failure(errc::refused, answer->text);
  return std::make_unique<kept_store>(keeper_, serving_, order.process,
                                      static_cast<std::uint16_t>(answer->number));
}

std::unique_ptr<ports::open_store> kept_store_host::adopt(std::uint16_t port) {
  // An earlier one may have been told to end and not have ended yet.
  const keeper_client::survivor* last = nullptr;
  for (const auto& s : keeper_.survivors())
    if (s.is_store && (!last || s.process > last->process))
      last = &s;
  if (!last)
    return nullptr;
  auto store = std::make_unique<kept_store>(keeper_, serving_, last->process, port);
  keeper_.send(about(kind::adopted, last->process));
  return store;
}

std::unique_ptr<ports::open_store> open_as_ordered(const packet& order, const os::unique_fd& answer,
                                                   ports::store_host& host) {
  auto opened = host.open({static_cast<ports::store_reach>(order.label), order.text,
                           static_cast<std::uint16_t>(order.number)});
  packet p;
  if (opened)
    p.number = (*opened)->port();
  else
    (void)put(p.text, opened.error().what.substr(0, sizeof p.text - 1));
  (void)send_packet(answer.get(), p);
  return opened ? std::move(*opened) : nullptr;
}

} // namespace troupe::launch
