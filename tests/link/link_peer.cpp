// The other end of a link, in a process of its own, so that it can be stopped, killed and starved.
// It echoes every message.
//
//     link_peer listen [--files N] [--silent MS] [--user N]      prints its port, then the names of
//                                                                warnings
//     link_peer dial PORT [--files N] [--silent MS] [--user N]   prints "connected", or why not
//
// With --user it is that user and proves itself with the token of this machine.
//
// It ends when a link of its has ended (dial), or when its standard input is closed.

#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "tests/link/samples.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace troupe;

namespace {

void echo(const ports::connection_ptr& link, bool end_with_it) {
  link->open({[link](const messages::any_msg& m) {
                link->taken();
                if (!link->send(m))
                  link->close("cannot echo");
              },
              [end_with_it](const ports::link_ending& end) {
                std::fprintf(stderr, "link_peer: %s\n", end.reason.c_str());
                if (end_with_it)
                  std::_Exit(3);
              }});
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

os::transport_options options_from(int argc, char** argv) {
  os::transport_options options;
  options.link.lease = 1h;
  options.log = [](const std::string&, const log::event& e) {
    if (e.severity >= log::level::warning)
      say(e.name);
  };
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string name = argv[i];
    const int value = std::atoi(argv[i + 1]);
    if (name == "--silent") {
      options.link.lease = std::chrono::milliseconds(value);
      options.link.beat_every = options.link.lease / 10;
    }
    if (name == "--user") {
      if (::setuid(static_cast<uid_t>(value)) != 0)
        std::_Exit(4);
      options.proven_by = os::local_token{};
    }
    if (name == "--files") {
      const rlimit few{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
      ::setrlimit(RLIMIT_NOFILE, &few);
      options.accept_backoff = 20ms;
      options.link.handshake_within = 1h;
    }
  }
  return options;
}

} // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string what = argc > 1 ? argv[1] : "";
  os::io_thread io;
  auto transport = os::asio_transport::make(io, options_from(argc, argv));
  std::unique_ptr<ports::listener> listener;
  if (what == "listen") {
    auto listening =
        (*transport)->listen({"127.0.0.1", 0}, [](const ports::peer& p) { echo(p.link, false); });
    if (!listening)
      return 2;
    listener = std::move(*listening);
    say(std::to_string(listener->where().port));
  } else if (what == "dial" && argc > 2) {
    (*transport)
        ->dial({"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[2]))}, testing::hello(),
               [](result<ports::connection_ptr> link) {
                 if (!link) {
                   say(link.error().what);
                   std::_Exit(2);
                 }
                 echo(*link, true);
                 say("connected");
               });
  } else {
    return 64;
  }
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  std::_Exit(0);
}
