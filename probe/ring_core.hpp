#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "probe/limits.hpp"
#include "probe/ring_blocks.hpp"
#include "probe/ring_program.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::probe {

/// One member's part in the probe of a group (messages/network_check.capnp): a ring in which all
/// members reduce and gather, as training does.
///
/// Each byte crosses each link of the ring, in one direction, and each member waits for the one
/// before it: so a link or a member that is broken or slow shows at all of them, and which one it
/// was shows by comparing groups. A pair is a ring as well, of two links, one in each direction.
///
/// Where the devices of all members have one library for collectives, these reduce and gather, in a
/// process of their own at each member. The ring only makes laps: they tell which members are
/// connected, and each hears at once that another one is lost, which a library notices after
/// minutes.
///
/// Everything that is received is checked: the number of the exchange, the place in the block, and
/// in the end what came out. Ends once, with a report.
class ring_core {
 public:
  /// A link to the next member, which hears ProbeBegin first. Answered with connected() or
  /// not_connected().
  struct dial {
    messages::msg<messages::ProbeBegin> begin;
  };
  struct to_next {
    messages::any_msg message;
  };
  struct to_previous {
    messages::any_msg message;
  };
  /// This node's devices are to be probed with the other members'. Answered with
  /// devices_probed(); where no key is given, with key_made() before that.
  struct probe_devices {
    messages::msg<messages::DevicesProbeWanted> wanted;
  };
  /// Nothing waits for their answer.
  struct end_devices {};
  /// Both links may go.
  struct done {
    messages::msg<messages::GroupProbed> report;
  };
  using effect = std::variant<dial, to_next, to_previous, probe_devices, end_devices, done>;
  using effects = std::vector<effect>;

  /// When so many bytes may be sent; if that is now, they are counted as sent.
  using pay = std::function<instant(instant, std::uint64_t)>;

  /// Why `wanted` can not be carried out; empty: it can.
  static std::string validation_error(messages::GroupProbeWanted::Reader wanted);
  /// Precondition: no validation error. `steps` behind the receiver: −1, 0 or 1.
  static messages::GroupMember::Reader neighbour(messages::GroupProbeWanted::Reader wanted,
                                                 int steps);

  /// Precondition: no validation error.
  ring_core(messages::author author, const messages::msg<messages::GroupProbeWanted>& wanted,
            instant now, pay may_send);

  effects begin();
  effects connected(instant now);
  /// `final`: to try again would change nothing.
  effects not_connected(instant now, const std::string& why, bool final);
  /// The link of the member before this one.
  effects previous_connected(instant now);
  effects part(instant now, const messages::msg<messages::ProbePart>& m);
  effects taken(instant now, const messages::msg<messages::ProbeTaken>& m);
  effects key(instant now, const messages::msg<messages::ProbeKey>& m);
  effects next_passed(instant now);
  effects previous_passed(instant now);
  /// By this node's devices.
  effects key_made(instant now, const std::string& key);
  effects devices_probed(instant now, const messages::msg<messages::GroupProbed>& m);
  effects next_lost(instant now, const std::string& why);
  effects previous_lost(instant now, const std::string& why);
  /// Another probe takes this one's place.
  effects abandon(instant now, const std::string& why);
  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  /// Which member dials this one.
  const node_name& previous() const { return previous_; }
  /// Whether a link that begins so is the one before this member's.
  bool is_previous(messages::ProbeBegin::Reader begin) const;
  bool ended() const { return ended_; }

 private:
  /// What this member gives in an exchange, as far as it is not sent.
  struct giving {
    std::uint64_t number = 0;
    std::uint64_t collective = 0;
    std::size_t at = 0, end = 0;
    bool empty = false; ///< the block has no bytes: one part says so
  };
  /// When the collectives of a size began and ended.
  struct size_times {
    std::optional<instant> began, reduced, gathered;
  };
  /// Of the members' devices.
  struct devices_part {
    bool begun = false;
    std::string key_to_give; ///< waits for what is to be sent before it
    std::optional<messages::msg<messages::GroupProbed>> own;
    bool next_passed = false, previous_passed = false;
  };

  const node_name& next() const { return next_; }
  bool all_received() const { return at_ == program_.length(); }
  /// And taken by the next member: the last exchange gives when it begins.
  bool all_given() const {
    return at_ + 1 >= program_.length() && gives_.empty() && on_the_way_ == 0;
  }
  ring_blocks& blocks(std::uint64_t collective) { return blocks_[collective % blocks_.size()]; }
  void enter(instant now);
  void give(std::uint64_t number, const exchange& e);
  bool take(effects& out, const exchange& e, std::uint64_t offset,
            kj::ArrayPtr<const kj::byte> content);
  void complete(effects& out, instant now, const exchange& e);
  void pump(effects& out, instant now);
  void end_if_done(effects& out, instant now);
  // What devices do (ring_core_devices.cpp).
  bool by_devices() const { return by_devices_; }
  void begin_devices(effects& out, instant now, const std::string& key);
  void give_key(effects& out);
  void end_if_devices_passed(effects& out, instant now);
  std::string devices_late() const;
  const node_name& late_member() const;
  void fail(effects& out, instant now, const std::string& why, const node_name& peer);
  void report(effects& out, instant now, const std::string& failed, const node_name& peer);
  instant due() const { return connected_ && previous_connected_ ? until_ : connect_until_; }
  /// What is missing, and how much was not: a link that is slow is not one that is cut.
  std::string late(instant now) const;

  messages::author author_;
  const messages::msg<messages::GroupProbeWanted> wanted_;
  const pay pay_;
  const instant began_, until_, connect_until_;
  std::uint32_t n_ = 0, place_ = 0, repeats_ = 0;
  bool by_devices_ = false, paced_ = false;
  const node_name previous_, own_, next_;
  std::vector<std::uint64_t> sizes_;
  const ring_program program_;
  /// Of two collectives in turn: what is still to be sent of one stays as it is while the next
  /// begins. A third cannot begin before, since it needs what this member gives to the first.
  std::array<ring_blocks, 2> blocks_;

  bool connected_ = false, previous_connected_ = false, ended_ = false;
  std::string refused_; ///< what the last dial said
  std::optional<instant> redial_at_;
  std::uint64_t at_ = 0;           ///< the exchange that is received
  std::size_t received_ = 0;       ///< bytes of it
  std::uint64_t taken_ = 0;        ///< bytes of all exchanges
  std::deque<giving> gives_;       ///< at most two collectives' exchanges
  std::uint64_t on_the_way_ = 0;   ///< bytes that the next member has not taken
  std::optional<instant> paid_at_; ///< before that nothing may be sent
  std::vector<instant> laps_;
  std::vector<size_times> times_;
  devices_part devices_;
};

} // namespace troupe::probe
