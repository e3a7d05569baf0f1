#pragma once

#include "actors/limits.hpp"
#include "actors/master/journal/journal.hpp"
#include "runtime/sup/shell.hpp"

#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::actors::journal {

/// Performs a core's effects in their order, but for those of type `Core::record`: the journal gets
/// these at once, in their order too, and what comes behind a record waits until the journal has
/// it. If the journal cannot take one the actor ends: a decision that cannot be recorded must not
/// be announced.
template<class Core, class Self>
class journalled {
 public:
  using effect = typename Core::effect;

  journalled(Self self, sup::address<handle> journal, std::function<void(const effect&)> perform)
      : self_(self), journal_(std::move(journal)), perform_(std::move(perform)) {}

  void run(std::vector<effect> effects) {
    for (auto& e : effects)
      if (const auto* to_record = std::get_if<typename Core::record>(&e)) {
        append(to_record->message);
      } else {
        waiting_.push_back({std::move(e), appended_});
      }
    invariant(waiting_.size() + open_.size() <= limits::pending_effects_max,
              "the journal does not keep up with the decisions");
    drain();
  }

 private:
  struct pending {
    effect what;
    std::uint64_t behind; ///< how many records come before it
  };

  void drain() {
    while (!waiting_.empty() && (open_.empty() || waiting_.front().behind < *open_.begin())) {
      const auto next = std::move(waiting_.front().what);
      waiting_.pop_front();
      perform_(next);
    }
  }

  /// After a full disk a later record may be there before an earlier one.
  void append(const messages::any_msg& record) {
    const auto number = ++appended_;
    open_.insert(number);
    sup::request(
        self_, journal_, limits::journal_patience, record,
        [this, number](const messages::msg<messages::Recorded>&) {
          open_.erase(number);
          drain();
        },
        [this](const error& e) {
          sup::stop(self_, error{e.code, "the journal did not take a decision: " + e.what});
        });
  }

  Self self_;
  sup::address<handle> journal_;
  std::function<void(const effect&)> perform_;
  std::deque<pending> waiting_;
  std::uint64_t appended_ = 0;
  std::set<std::uint64_t> open_; ///< records that the journal does not have yet
};

} // namespace troupe::actors::journal
