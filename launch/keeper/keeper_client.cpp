#include "launch/keeper/keeper_client.hpp"

#include "messages/conversations.hpp"
#include "runtime/base/invariant.hpp"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

using namespace messages;

namespace {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file, bytes.data(), bytes.size());
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// What the keeper said next. It is this program's own snapshot, so it says nothing that this
/// process does not understand; a supervisor that cannot rely on that begins anew.
any_msg heard(const received_packet& got) {
  invariant(got.what.has_value(), "the keeper says what is no message");
  return *got.what;
}

} // namespace

keeper_client::keeper_client(os::unique_fd socket, kept_files kept, result<control_group> group)
    : socket_(std::move(socket)), kept_(std::move(kept)), group_(std::move(group)),
      out_of_memory_(
          local<SupervisorFailed>(said_by, [](auto b) { b.setWhy("out of memory"); }).any()) {
  for (bool all = false; !all;) {
    const auto got = receive_packet(socket_.get(), true);
    invariant(got.has_value(), "the keeper is gone");
    const bool first = route(
        heard(*got), kind_list<ProcessPresent, AllPresented>{},
        receivers{
            [this](const msg<ProcessPresent>& m) {
              auto p = m.read();
              survivors_.push_back({p->getProcess(), p->getLabel(), p->getPid(), p->getIsStore()});
            },
            [&](const msg<AllPresented>& m) {
              earlier_lives_ = static_cast<int>(m.read()->getEarlierLives());
              all = true;
            }});
    invariant(first, "the keeper says other things first");
  }
  // Lives are far more than processes of one.
  last_process_ = static_cast<std::uint64_t>(earlier_lives_) << 32;
}

bool keeper_client::keep(std::size_t slot, std::string_view bytes) {
  invariant(slot < limits::kept_slots, "there is no such slot");
  const os::unique_fd file(::memfd_create("troupe-kept", MFD_CLOEXEC));
  if (!file || bytes.size() > limits::kept_bytes_max || !write_all(file.get(), bytes))
    return false;
  say<Kept>([slot](auto b) { b.setSlot(static_cast<std::uint8_t>(slot)); }, file.get());
  return true;
}

std::optional<std::string> keeper_client::kept(std::size_t slot) const {
  struct stat found {};
  const int file = kept_.at(slot).get();
  if (file < 0 || ::fstat(file, &found) != 0)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(found.st_size), '\0');
  if (::pread(file, bytes.data(), bytes.size(), 0) != found.st_size)
    return std::nullopt;
  return bytes;
}

std::uint64_t keeper_client::next_process() {
  const std::lock_guard lock(mutex_);
  return ++last_process_;
}

void keeper_client::send(const any_msg& m, int file) {
  (void)send_packet(socket_.get(), m, file);
}

void keeper_client::signal(std::uint64_t process, int number, bool alone) {
  say<ProcessSignal>([process, number, alone](auto b) {
    b.setProcess(process);
    b.setSignal(number);
    b.setAlone(alone);
  });
}

void keeper_client::adopted(std::uint64_t process) {
  say<ProcessAdopted>([process](auto b) { b.setProcess(process); });
}

void keeper_client::failed(const std::string& why) {
  say<SupervisorFailed>([&why](auto b) { b.setWhy(fit_for_packet(why)); });
}

void keeper_client::out_of_memory() {
  send(out_of_memory_, -1);
}

void keeper_client::over(int exit_code) {
  say<SupervisorOver>([exit_code](auto b) { b.setExitCode(exit_code); });
}

void keeper_client::listen(os::io_thread& io, listener to) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(to));
  if (std::exchange(io_, &io))
    return;
  const int copy = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
  incoming_ = std::make_shared<boost::asio::posix::stream_descriptor>(io.context(), copy);
  await();
}

void keeper_client::await() {
  incoming_->async_wait(boost::asio::posix::descriptor_base::wait_read,
                        [this](const boost::system::error_code& cancelled) {
                          if (cancelled)
                            return;
                          while (const auto got = receive_packet(socket_.get(), false))
                            take(heard(*got));
                          await();
                        });
}

void keeper_client::take(const any_msg& m) {
  const bool known =
      route(m, keeper_news{},
            receivers{[](const auto&) { invariant(false, "the keeper presents processes again"); },
                      [this](const msg<UserSignal>& s) { take_signal(s.read()->getSignal()); },
                      [this](const msg<ProcessEnded>& e) {
                        auto ended = e.read();
                        const ports::exit_status how{ended->getSignalled(), ended->getNumber()};
                        for (const auto& one : listeners())
                          one.ended(ended->getProcess(), how);
                      },
                      [this](const msg<StraysAwaited>& s) {
                        auto left = s.read();
                        const ports::left_behind told{left->getProcesses().cStr(), left->getCount(),
                                                      std::chrono::microseconds(left->getQuietUs()),
                                                      std::chrono::microseconds(left->getLeftUs())};
                        for (const auto& one : listeners())
                          one.awaited(told);
                      },
                      [this](const msg<StraysSwept>& s) {
                        auto what = s.read();
                        for (const auto& one : listeners())
                          one.swept({what->getKilled(), what->getEnded()});
                      }});
  invariant(known, "the keeper says what no keeper says");
}

std::vector<keeper_client::listener> keeper_client::listeners() {
  const std::lock_guard lock(mutex_);
  return listeners_;
}

void keeper_client::take_signal(int number) {
  std::unique_lock lock(mutex_);
  if (!on_user_signal_)
    return early_signals_.push_back(number);
  const auto tell = on_user_signal_;
  lock.unlock();
  tell(number);
}

void keeper_client::on_user_signal(std::function<void(int)> tell) {
  std::unique_lock lock(mutex_);
  on_user_signal_ = tell;
  const auto early = std::exchange(early_signals_, {});
  lock.unlock();
  for (const int number : early)
    tell(number);
}

} // namespace troupe::launch
