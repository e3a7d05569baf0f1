#include "launch/keeper/keeper_client.hpp"

#include "runtime/base/invariant.hpp"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

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

} // namespace

keeper_client::keeper_client(os::unique_fd socket, kept_files kept, result<control_group> group)
    : socket_(std::move(socket)), kept_(std::move(kept)), group_(std::move(group)) {
  for (;;) {
    const auto got = receive_packet(socket_.get(), true);
    invariant(got.has_value(), "the keeper is gone");
    const auto& p = got->what;
    if (p.what == packet::kind::presented) {
      earlier_lives_ = p.number;
      break;
    }
    invariant(p.what == packet::kind::present, "the keeper says other things first");
    survivors_.push_back({p.process, p.label, p.pid, p.is_store});
  }
  // Lives are far more than processes of one.
  last_process_ = static_cast<std::uint64_t>(earlier_lives_) << 32;
}

bool keeper_client::keep(std::size_t place, std::string_view bytes) {
  invariant(place < limits::kept_places, "there is no such place");
  const os::unique_fd file(::memfd_create("troupe-kept", MFD_CLOEXEC));
  if (!file || bytes.size() > limits::kept_bytes_max || !write_all(file.get(), bytes))
    return false;
  packet p;
  p.what = packet::kind::keep;
  p.number = static_cast<std::int32_t>(place);
  send(p, file.get());
  return true;
}

std::optional<std::string> keeper_client::kept(std::size_t place) const {
  struct stat found {};
  const int file = kept_.at(place).get();
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

void keeper_client::send(const packet& p, int file) {
  (void)send_packet(socket_.get(), p, file);
}

void keeper_client::failed(const std::string& why) {
  auto p = about(packet::kind::failed);
  why.copy(p.text, sizeof p.text - 1);
  send(p);
}

void keeper_client::over(int exit_code) {
  packet p;
  p.what = packet::kind::over;
  p.number = exit_code;
  send(p);
}

void keeper_client::listen(os::io_thread& io, std::function<void(const packet&)> on_packet) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(on_packet));
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
                            take(got->what);
                          await();
                        });
}

void keeper_client::take(const packet& p) {
  std::unique_lock lock(mutex_);
  if (p.what == packet::kind::user_signal) {
    if (!on_user_signal_)
      return early_signals_.push_back(p.number);
    const auto tell = on_user_signal_;
    lock.unlock();
    return tell(p.number);
  }
  const auto listeners = listeners_;
  lock.unlock();
  for (const auto& tell : listeners)
    tell(p);
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
