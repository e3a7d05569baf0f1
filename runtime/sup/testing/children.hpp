#pragma once

#include "runtime/base/time.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// Children for tests of supervision, named after what is wrong with them.
namespace troupe::sup::children {

/// Makes a child do what it is named after.
struct poke {};
/// Ends a child with an error, whatever it is named after.
struct crash {};
/// Answered with the incarnation of the child that is there.
struct who {};

using handle = protocol<tell<poke>, tell<crash>, ask<who>::yields<unsigned>>;
using starter = std::function<handle(context&)>;

/// What the children did, in order: "b starts", "b ends". Safe from any thread.
class diary {
 public:
  void write(const std::string& line) const;
  /// All lines since the last call, joined: "a starts, b starts".
  std::string read() const;

 private:
  struct pages {
    std::mutex mutex;
    std::vector<std::string> lines;
  };
  std::shared_ptr<pages> pages_ = std::make_shared<pages>();
};

starter well_behaved(diary d);
/// Its starter throws from incarnation `from` up to, not including, `to`.
starter crashes_on_start(diary d, unsigned from = 0, unsigned to = ~0u);
/// Its starter succeeds, its behaviour function throws.
starter restarts_forever(diary d);
/// Its nth poke throws.
starter crashes_on_nth_message(diary d, unsigned nth);
/// Any poke throws what Cap'n Proto throws on a message it cannot read.
starter throws_kj_exception(diary d);
starter exits_normally_when_poked(diary d);
starter ignores_shutdown(diary d);
/// Ends this long after it was asked to.
starter slow_to_stop(diary d, duration takes);
/// Asked to stop, it fails instead.
/// Writes down each order to end, and ends when the order's time is over, or after `takes`.
starter reads_its_orders(diary d, duration takes);
starter fails_while_stopping(diary d);
/// Leaves `describe` unanswered.
starter never_describes(diary d);
/// Returns no actor.
starter forgets_to_spawn();

} // namespace troupe::sup::children

TROUPE_LOCAL_MESSAGE(troupe::sup::children::poke)
TROUPE_LOCAL_MESSAGE(troupe::sup::children::crash)
TROUPE_LOCAL_MESSAGE(troupe::sup::children::who)
