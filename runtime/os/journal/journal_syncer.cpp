#include "runtime/os/journal/journal_syncer.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/call_on.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::os {

namespace {

std::string text_of(int number) {
  return std::generic_category().message(number);
}

} // namespace

result<std::unique_ptr<journal_syncer>> journal_syncer::start(const std::string& path,
                                                              sync_call sync) {
  const auto log = path + "-wal";
  const int descriptor = ::open(log.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return failure(errc::unavailable,
                   fmt::format("journal '{}': cannot open its log: {}", path, text_of(errno)));
  return std::unique_ptr<journal_syncer>(new journal_syncer(path, descriptor, std::move(sync)));
}

journal_syncer::journal_syncer(std::string path, int descriptor, sync_call sync)
    : path_(std::move(path)), descriptor_(descriptor), sync_(std::move(sync)) {}

journal_syncer::~journal_syncer() {
  call_on(thread_, [this] { timer_.reset(); });
  ::close(descriptor_);
}

void journal_syncer::later() {
  if (due_.exchange(true))
    return;
  boost::asio::post(thread_.context(), [this] {
    timer_.emplace(thread_.context(), limits::journal_sync_within);
    timer_->async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled && timer_) // it may have expired just before the destructor took it away
        sync();
    });
  });
}

result<void> journal_syncer::state() const {
  if (const int number = error_; number != 0)
    return failure(errc::refused, fmt::format("journal '{}': the disk did not take it: {}", path_,
                                              text_of(number)));
  return {};
}

void journal_syncer::sync() {
  due_ = false;
  if (sync_(descriptor_) != 0)
    error_ = errno;
  else if (!named_)
    sync_name();
}

void journal_syncer::sync_name() {
  const auto directory = std::filesystem::absolute(path_).parent_path();
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  named_ = descriptor >= 0 && sync_(descriptor) == 0;
  if (!named_)
    error_ = errno;
  if (descriptor >= 0)
    ::close(descriptor);
}

} // namespace troupe::os
