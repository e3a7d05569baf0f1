#include "runtime/os/process/posix_process_host.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/call_on.hpp"
#include "runtime/os/process/children.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/spawn.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

namespace {

/// Binds to a free port of all addresses of a family.
result<std::uint16_t> free_port_of(int family) {
  unique_fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return failure(errc::unavailable, fmt::format("no free port: {}", system_message(errno)));
  sockaddr_storage where{};
  where.ss_family = static_cast<sa_family_t>(family);
  socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* address = reinterpret_cast<sockaddr*>(&where);
  const int both_families = 0;
  if (family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both_families, sizeof both_families);
  if (::bind(socket.get(), address, size) != 0 || ::getsockname(socket.get(), address, &size) != 0)
    return failure(errc::unavailable, fmt::format("no free port: {}", system_message(errno)));
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&where)->sin_port);
}

} // namespace

std::uint64_t raise_open_files() {
  rlimit limit{};
  invariant(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit failed");
  const std::uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  invariant(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit refused our own hard limit");
  return before;
}

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

/// Free on every address, of which `address` is one: torch's store listens on all of them, whatever
/// name others reach it under.
result<std::uint16_t> posix_process_host::free_port(const std::string& /*address*/) {
  auto port = free_port_of(AF_INET6);
  return port ? port : free_port_of(AF_INET);
}

std::int64_t posix_process_host::unix_time_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::optional<std::string> posix_process_host::read_small_file(const std::string& path,
                                                               std::size_t limit) {
  // Workers choose what lies there: a pipe must not make us wait.
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
    return std::nullopt;
  std::string content(limit, '\0');
  std::size_t have = 0;
  while (have < limit) {
    const auto got = ::read(file.get(), content.data() + have, limit - have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return content;
}

} // namespace troupe::os
