#include "runtime/os/process/posix_process_host.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/process/children.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/spawn.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace troupe::os {

result<std::unique_ptr<posix_process_host>>
posix_process_host::create(io_thread& io, process_host_options options) {
  if (::access("/proc/thread-self/children", R_OK) != 0)
    return failure(
        errc::refused,
        fmt::format("/proc/thread-self/children cannot be read ({}): without it, what training "
                    "processes leave behind cannot be found",
                    system_message(errno)));
  return std::unique_ptr<posix_process_host>(new posix_process_host(io, options));
}

posix_process_host::posix_process_host(io_thread& io, process_host_options options)
    : io_(io), options_(options) {
  invariant(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0,
            "this kernel has no child subreapers");
  // If whoever started us ignored SIGCHLD, the kernel would reap our children before we learn how
  // they ended.
  struct sigaction present {};
  ::sigaction(SIGCHLD, nullptr, &present);
  if (present.sa_handler == SIG_IGN)
    ::signal(SIGCHLD, SIG_DFL);
  const pid_t spawner = call_on(spawner_, [] {
    ::pthread_setname_np(::pthread_self(), "troupe-spawn");
    return ::gettid();
  });
  children_ = std::make_shared<children>(io_.context(), spawner);
  boost::asio::post(io_.context(), [kept = children_] { kept->open(); });
}

posix_process_host::~posix_process_host() {
  call_on(io_, [kept = children_] { kept->close(); });
}

result<ports::started> posix_process_host::start(const ports::process_spec& spec, ended on_end) {
  return call_on(spawner_, [this, &spec, &on_end]() -> result<ports::started> {
    auto child = spawn(spec, options_.open_files);
    if (!child)
      return tl::make_unexpected(child.error());
    const ports::started answer{++last_, child->pid};
    // Posted before the caller knows the process, so that whatever it asks for next finds it in the
    // table.
    boost::asio::post(io_.context(),
                      [kept = children_, process = answer.process, child = std::move(*child),
                       on_end = std::move(on_end)]() mutable {
                        kept->watch(process, std::move(child), std::move(on_end));
                      });
    return answer;
  });
}

void posix_process_host::signal(ports::process_id process, int number) {
  boost::asio::post(io_.context(),
                    [kept = children_, process, number] { kept->signal(process, number); });
}

void posix_process_host::sweep(std::function<void(std::size_t killed)> done) {
  boost::asio::post(io_.context(), [kept = children_, done = std::move(done)]() mutable {
    kept->sweep(std::move(done));
  });
}

result<std::uint16_t> posix_process_host::free_port(const std::string& /*address*/) {
  return os::free_port();
}

std::int64_t posix_process_host::unix_time_ms() {
  return os::unix_time_ms();
}

std::optional<std::string> posix_process_host::read_small_file(const std::string& path,
                                                               std::size_t limit) {
  return os::read_small_file(path, limit);
}

} // namespace troupe::os
