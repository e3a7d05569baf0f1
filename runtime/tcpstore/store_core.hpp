#pragma once

#include "runtime/tcpstore/keyspace.hpp"
#include "runtime/tcpstore/limits.hpp"
#include "runtime/tcpstore/wire.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tcpstore {

/// One connection, for as long as it lasts; numbers are used again.
using client_id = std::uint32_t;

/// Tests make them smaller.
struct bounds {
  std::size_t memory_max = limits::store_memory_max;
  std::size_t traffic_max = limits::store_traffic_max;
  std::size_t answer_max = limits::store_answer_max;
  std::size_t answers_pause = limits::store_answers_pause;
  std::size_t held_back_max = limits::store_held_back_max;
  std::size_t clients_max = limits::store_clients_max;
};

/// A store and its clients: what each sends becomes answers, at once or when what it waits for has
/// come. There is no time in it: how long to wait is each client's own business, and it says so
/// when it gives up (cancel_wait).
///
/// A client's answers follow the order of its requests: behind a request that blocks everything
/// waits but its cancellation. A key that was waited for counts as come when it has been there
/// once. A barrier is a counter under its key and stays there when it is complete, as with torch.
///
/// The owner of the connections calls the events, and looks at `changes` after each.
class store_core {
 public:
  explicit store_core(const bounds& of = {}) : bounds_(of) {}

  // The changes refer to it.
  store_core(const store_core&) = delete;
  store_core& operator=(const store_core&) = delete;

  /// Nothing if there are too many already.
  std::optional<client_id> connected();
  /// When it returns all has happened that follows from these bytes: waits of other clients that
  /// are over, and what those clients had held back.
  void received(client_id who, std::string_view bytes);
  /// So many bytes of its answers are on their way and can be forgotten.
  void sent(client_id who, std::size_t bytes);
  /// The connection is gone, by its own will or because of `closing`. Its number is free again.
  void disconnected(client_id who);

  struct closing {
    client_id who = 0;
    std::string why; ///< one line for people
  };
  struct changes {
    std::vector<client_id> answered; ///< each has more to be sent now; once each
    std::vector<client_id> resumed;  ///< each wants input again
    std::vector<closing> closed;     ///< to be closed now; nothing is sent any more
  };
  /// Since the last call. The reference holds until the next one.
  const changes& take_changes();

  /// What is to be sent to it, oldest first. Valid until the next event.
  std::string_view answers(client_id who) const;
  /// Whether to read from it: not while too much of it waits, in either direction.
  bool wants_input(client_id who) const;
  dialect speaks(client_id who) const { return clients_.at(who).in.speaks(); }

  std::size_t clients() const { return clients_.size() - free_.size(); }
  std::size_t keys() const { return keys_.size(); }
  /// Bytes of keys, values and queues, and of what is on its way or waited for.
  std::size_t memory() const { return memory_.used(); }
  std::size_t traffic() const { return traffic_.used(); }

 private:
  /// A client that waits for one name; a name's waiters stand in order of arrival.
  struct waiter {
    client_id who = 0;
    std::size_t nth = 0; ///< of that client's waits
  };
  /// A list, as a client that gives up leaves from the middle.
  using line = std::list<waiter>;
  using lines = std::map<std::string, line, std::less<>>;
  /// Stays among the client's waits when it is over: waiter::nth counts on its place there.
  struct wait {
    lines::iterator name;
    line::iterator place;
    bool over = false;
  };

  /// What ends a wait that was not given up.
  static constexpr std::uint8_t wait_over = 0;

  enum class phase : std::uint8_t { free, serving, blocked, closed };
  struct client {
    phase now = phase::free;
    reader in;
    /// A request that is incomplete, or whole ones behind one that blocks: to the store both are
    /// bytes.
    std::string held; ///< received and not yet a request, or not yet its turn
    std::string out;
    std::size_t out_sent = 0; ///< bytes of `out` that are gone
    std::vector<wait> waits;
    std::size_t missing = 0; ///< of them
    std::size_t cost = 0;    ///< of them
    bool answered = false;   ///< is among the changes
    bool stalled = false;    ///< its requests wait until its answers are taken
    bool full = false;       ///< wanted no input when last looked at
  };

  /// Either in the buffer that was just read, or in what was held back before and the new bytes
  /// behind it.
  void serve(client_id who, std::string_view bytes);
  /// Answers how many bytes that took. The rest is the beginning of a request, or not its turn.
  std::size_t serve_what_it_can(client_id who, std::string_view bytes);
  /// Last in each event that may have woken a client.
  void serve_the_woken();
  /// After each change of what a client holds or has to be sent.
  void note_appetite(client_id who);
  /// By kinds: what concerns one key, a queue, a list of keys, or the store as a whole.
  void perform(client_id who, const request& r);
  void perform_on_key(client_id who, const request& r);
  void perform_on_queue(client_id who, const request& r);
  void perform_on_list(client_id who, const request& r);
  /// Blocking is a phase of the client and nothing more: no thread stands still for it.
  void wait_for(client_id who, const request& r);
  /// How long to wait is the client's business: there is no clock in here.
  void cancel_wait(client_id who);
  /// A counter and a wait in one request, as torch has it.
  void come_to_barrier(client_id who, const request& r);
  /// Missing keys are empty texts in their places, as for a single get.
  void multi_get(client_id who, const request& r);
  void multi_set(client_id who, const request& r);
  void list_keys(client_id who);

  /// A name may be a key, a queue, or both.
  bool is_there(std::string_view name) const;
  /// False if there is no room, and then the client is closed.
  bool enlist(client_id who, std::string_view name);
  void wake_all(std::string_view name);
  /// Sets wake all, pushes one: a value can be read by all, and popped by one.
  void wake_one(std::string_view name);
  /// The one place at which a client stops being blocked for a reason other than its own.
  bool satisfy_first(line& names);
  /// Whether they are over or given up: what they cost is given back here alone.
  void forget_waits(client& c);

  /// Null for a client that is closed: what it would be answered is not even counted.
  std::string* room_for(client_id who, std::size_t size);
  void answer_byte(client_id who, std::uint8_t byte);
  void answer_number(client_id who, std::int64_t number);
  void answer_text(client_id who, std::string_view text);
  template<class T>
  /// Or the client is closed, with the reason.
  bool worked(client_id who, const result<T>& r);
  /// Only said here: the owner closes the connection, and disconnected() frees what the client had.
  void close(client_id who, std::string why);

  bounds bounds_;
  budget memory_{bounds_.memory_max};
  /// Apart from memory_, so that clients which do not read cannot take the room of keys, nor keys
  /// that of answers.
  budget traffic_{bounds_.traffic_max};
  /// Keys stay as long as the store, which is as long as a generation: nothing here expires.
  keyspace keys_{memory_};
  /// A client's number is its place.
  std::vector<client> clients_;
  /// Numbers without a client; the vector of clients itself never shrinks.
  std::vector<client_id> free_;
  /// One line for each name that is waited for and not there, in order of arrival: a queue's push
  /// is for the first.
  lines waiting_;
  std::vector<client_id> woken_; ///< unblocked, their held requests not yet looked at
  changes changes_;
  changes taken_;
};

} // namespace troupe::tcpstore
