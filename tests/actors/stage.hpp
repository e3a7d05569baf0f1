#pragma once

#include "messages/kinds.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/root.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/testing/simulated_engine.hpp"
#include "tests/actors/vocabulary.hpp"
#include "tests/fakes/transport.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A tree on a simulated engine, and everything that was said: what tests of the shells share.
struct stage {
  explicit stage(std::uint64_t seed = 1) : random(seed), engine(dawn) {}

  log::sink sink() {
    return [this](const std::string& component, const log::event& e) {
      said.push_back(component + ": " + e.text);
    };
  }

  void play(const sup::tree& t) {
    root.emplace(sup::spawn_root(engine.system(), t, sink(),
                                 [this](const sup::ending& e) { endings.push_back(e); }));
    settle();
  }

  void settle() { engine.run_all(random); }
  void pass(duration d) { engine.run_for(d, random); }

  /// Ends an actor as a bug would: without asking it.
  template<class H>
  void crash(const H& whom) {
    caf::anon_send_exit(whom, caf::exit_reason::kill);
    settle();
  }
  template<class H>
  void crash(const sup::address<H>& whom) {
    crash(whom.current());
  }

  /// What an actor answers to a question; the error's text in `refusal` if it does not.
  template<class Answer, class H, class Msg>
  std::optional<Answer> ask(const H& whom, Msg question) {
    auto answer = std::make_shared<std::optional<Answer>>();
    engine.system().spawn([this, whom, question, answer](caf::event_based_actor* self) {
      sup::request(
          self, whom, limits::request_within, question, [answer](const Answer& a) { *answer = a; },
          [this](const error& e) { refusal = e.what; });
    });
    settle();
    return *answer;
  }

  bool was_said(const std::string& words) const {
    return std::any_of(said.begin(), said.end(), [&words](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }

  random_source random;
  std::string refusal;
  std::vector<std::string> said;
  std::vector<sup::ending> endings;
  sup::simulated_engine engine;
  std::optional<sup::root> root;
};

/// What was sent through a link since the last call, one line per message.
inline std::string heard(troupe::testing::fake_link& link) {
  std::string all;
  for (const auto& m : link.take_sent())
    all += (all.empty() ? "" : "\n") + text(m);
  return all;
}

} // namespace troupe::actors::testing
