#pragma once

#include "actors/limits.hpp"
#include "actors/master/journal/journal.hpp"
#include "runtime/sup/shell.hpp"

#include <deque>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::actors::journal {

/// Performs a core's effects in their order; one of type `Core::record` holds everything behind it
/// back until the journal has it. If the journal cannot take it the actor ends: a decision that
/// cannot be recorded must not be announced.
template<class Core, class Self>
class journalled {
 public:
  using effect = typename Core::effect;

  journalled(Self self, sup::address<handle> journal, std::function<void(const effect&)> perform)
      : self_(self), journal_(std::move(journal)), perform_(std::move(perform)) {}

  void run(std::vector<effect> effects) {
    for (auto& e : effects)
      waiting_.push_back(std::move(e));
    invariant(waiting_.size() <= limits::pending_effects_max,
              "the journal does not keep up with the decisions");
    drain();
  }

 private:
  void drain() {
    while (!recording_ && !waiting_.empty()) {
      const auto next = std::move(waiting_.front());
      waiting_.pop_front();
      const auto* to_record = std::get_if<typename Core::record>(&next);
      if (to_record)
        append(to_record->message);
      else
        perform_(next);
    }
  }

  void append(const messages::any_msg& record) {
    recording_ = true;
    sup::request(
        self_, journal_, limits::journal_patience, record,
        [this](const recorded&) {
          recording_ = false;
          drain();
        },
        [this](const error& e) {
          sup::stop(self_, error{e.code, "the journal did not take a decision: " + e.what});
        });
  }

  Self self_;
  sup::address<handle> journal_;
  std::function<void(const effect&)> perform_;
  std::deque<effect> waiting_;
  bool recording_ = false;
};

} // namespace troupe::actors::journal
