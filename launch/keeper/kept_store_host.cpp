#include "launch/keeper/kept_store_host.hpp"

#include "launch/keeper/limits.hpp"
#include "messages/conversations.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/ports/process.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>

#include <poll.h>

namespace troupe::launch {

using namespace messages;

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
    keeper_.signal(process_, SIGKILL);
  }
  std::uint16_t port() const override { return port_; }

 private:
  keeper_client& keeper_;
  serving serving_;
  std::uint64_t process_;
  std::uint16_t port_;
};

/// Nothing as well if what came is no message: then the store is no better than one that is silent.
std::optional<any_msg> answer_within(int socket, duration patience) {
  pollfd ready{socket, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  if (::poll(&ready, 1, static_cast<int>(ms)) <= 0)
    return std::nullopt;
  auto got = receive_packet(socket, false);
  return got && got->what ? std::optional(std::move(*got->what)) : std::nullopt;
}

} // namespace

kept_store_host::kept_store_host(os::io_thread& io, keeper_client& keeper, log::sink log)
    : keeper_(keeper), serving_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  const auto ended = [now = serving_, log = std::move(log)](std::uint64_t process,
                                                            const ports::exit_status& how) {
    if (process != 0 && now->compare_exchange_strong(process, 0))
      log("store", {log::level::error,
                    "store_ended",
                    "the workers' store has ended with " + ports::to_string(how) +
                        "; workers that ask it fail, and are started again with another one",
                    {}});
  };
  keeper_.listen(io, {ended, [](const auto&) {}, [](const auto&) {}});
}

result<std::unique_ptr<ports::open_store>>
kept_store_host::open(const ports::store_options& options) {
  auto [ours, theirs] = packet_pair();
  if (!ours)
    return failure(errc::unavailable, fmt::format("the workers' store cannot be started: {}",
                                                  os::system_message(errno)));
  if (options.address.size() > limits::packet_text_max)
    return failure(errc::refused, "the address of the workers' store is too long");
  const auto process = keeper_.next_process();
  keeper_.say<StoreWanted>(
      [&](auto b) {
        b.setProcess(process);
        b.setReach(options.reach == ports::store_reach::network ? StoreWanted::Reach::NETWORK
                                                                : StoreWanted::Reach::THIS_MACHINE);
        b.setAddress(options.address);
        b.setPort(options.port);
      },
      theirs.get());
  theirs = {};
  const auto answer = answer_within(ours.get(), limits::store_opens_within);
  result<std::unique_ptr<ports::open_store>> outcome =
      failure(errc::unavailable, "the workers' store did not start");
  const bool answered =
      answer && route(*answer, store_answers{},
                      receivers{[&](const msg<StoreOpened>& m) {
                                  outcome = std::make_unique<kept_store>(keeper_, serving_, process,
                                                                         m.read()->getPort());
                                },
                                [&](const msg<StoreRefused>& m) {
                                  outcome = failure(errc::refused, m.read()->getWhy().cStr());
                                }});
  if (!answered)
    keeper_.signal(process, SIGKILL);
  return outcome;
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
  keeper_.adopted(last->process);
  return store;
}

std::unique_ptr<ports::open_store>
open_as_ordered(const store_order& order, const os::unique_fd& answer, ports::store_host& host) {
  auto wanted = order.read();
  const auto reach = wanted->getReach() == StoreWanted::Reach::NETWORK
                         ? ports::store_reach::network
                         : ports::store_reach::this_machine;
  auto opened = host.open({reach, wanted->getAddress().cStr(), wanted->getPort()});
  const auto said =
      opened ? local<StoreOpened>("store", [&](auto b) { b.setPort((*opened)->port()); }).any()
             : local<StoreRefused>("store", [&](auto b) {
                 b.setWhy(fit_for_packet(opened.error().what));
               }).any();
  (void)send_packet(answer.get(), said);
  return opened ? std::move(*opened) : nullptr;
}

} // namespace troupe::launch
