#include "launch/wiring/endpoint_name.hpp"

#include "runtime/base/back_off.hpp"
#include "runtime/base/reminder.hpp"

#include <fmt/format.h>

#include <memory>

#include <netdb.h>
#include <sys/socket.h>

namespace troupe::launch {

namespace {

constexpr auto first_pause = 100ms;
constexpr auto longest_pause = 2s;

void tell(const log::sink& to, log::level how, const std::string& host, const std::string& text) {
  to("actor-launcher", {how, "endpoint_name_missing", text, {{"host", host}}});
}

} // namespace

std::string look_up(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int why = ::getaddrinfo(host.c_str(), nullptr, &wanted, &raw);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  return why == 0 ? std::string() : ::gai_strerror(why);
}

result<void> await_name(const std::string& host, duration within, const name_wait& by) {
  const auto began = by.now();
  reminder again;
  back_off pause(first_pause, longest_pause);
  for (auto why = by.lookup(host); !why.empty(); why = by.lookup(host)) {
    const auto now = by.now();
    if (now - began >= within)
      return failure(errc::unavailable,
                     fmt::format("the endpoint's name '{}' was not resolved within {} ({}): this "
                                 "node cannot tell whether it is to run the master",
                                 host, troupe::in_words(within), why));
    if (!again.next()) {
      again.begin(now);
      tell(by.log, log::level::notice, host,
           fmt::format("waiting for the name '{}' to be resolved ({}): it tells which node runs "
                       "the master",
                       host, why));
    } else if (again.due(now)) {
      tell(by.log, log::level::warning, host,
           fmt::format("the name '{}' is still not resolved ({}); trying again for {}", host, why,
                       troupe::in_words(within - (now - began))));
    }
    if (!by.pause(pause.next()))
      return failure(errc::closed, fmt::format("stopped while waiting for the name '{}'", host));
  }
  return {};
}

} // namespace troupe::launch
