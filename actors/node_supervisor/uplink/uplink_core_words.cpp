// What uplink_core says to people.

#include "actors/node_supervisor/uplink/uplink_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

/// Processes of one job that are started together find each other within this; until then a missing
/// master is a notice and no warning.
constexpr duration expected_within = 5s;

} // namespace

/// Once for each reason, and then now and again.
void uplink_core::report_error(effects& out, instant now, const std::string& why) {
  if (!waiting_.next())
    waiting_.begin(trying_since_);
  const bool is_news = why != last_error_;
  if (!waiting_.due(now) && !is_news)
    return;
  last_error_ = why;
  // A master that is started at the same time is a moment late as a rule; nothing is wrong then.
  const bool early = !was_linked_ && now - trying_since_ < expected_within;
  const auto left = troupe::in_words(gives_up_at() - now);
  auto text = early ? fmt::format("waiting for the master at {} ({})", options_.master, why)
              : trains_on()
                  ? fmt::format("no link to the master at {}: {}; training goes on without it, and "
                                "this node tries to reach it for {} (--master-away-timeout)",
                                options_.master, why, left)
                  : fmt::format("no link to the master at {}: {}; trying again for {}",
                                options_.master, why, left);
  out.push_back(note{{early ? log::level::notice : log::level::warning,
                      "link_missing",
                      std::move(text),
                      {{"master", options_.master}, {"reason", why}}}});
}

std::string uplink_core::in_words() const {
  switch (phase_) {
  case phase::resting:
    return fmt::format("no link to {}; next attempt soon", options_.master);
  case phase::asking:
  case phase::dialling:
    return "dialling " + options_.master;
  case phase::greeting:
    return "waiting for a welcome from " + options_.master;
  case phase::linked:
    return "linked to " + options_.master;
  case phase::over:
    return "over";
  }
  return {};
}

} // namespace troupe::actors
