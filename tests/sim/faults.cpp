#include "tests/sim/faults.hpp"

#include "runtime/link/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <sstream>

namespace troupe::sim {

namespace {

using command = std::vector<std::string>;

/// Words from `from` on, as one.
std::string rest(const command& w, std::size_t from) {
  return fmt::format(
      "{}",
      fmt::join(w.begin() + static_cast<std::ptrdiff_t>(std::min(from, w.size())), w.end(), " "));
}

std::string node_of(cluster& c, const std::string& word) {
  if (word != "?")
    return "n" + word;
  return cluster::node_name_of(
      static_cast<std::uint32_t>(1 + c.all().random.below(c.options().nodes)));
}

tl::unexpected<error> unknown(const command& w) {
  return failure(errc::invalid, fmt::format("'{}' says nothing", rest(w, 0)));
}

/// "pauses 900ms": SIGSTOP, and SIGCONT after that.
bool take_a_pause(cluster& c, const std::string& host, const std::string& what) {
  const auto w = words_of(what);
  const auto time =
      w.size() == 2 && w[0] == "pauses" ? parse_duration(w[1]) : failure(errc::invalid, "");
  if (!time)
    return false;
  c.pause(host);
  c.all().events.in(*time, [&c, host] { c.resume(host); });
  return true;
}

/// What can happen to any process.
bool befall(cluster& c, const std::string& host, const std::string& what) {
  if (what == "dies")
    c.crash(host, ending_kind::killed);
  else if (what == "loses power")
    c.crash(host, ending_kind::power_cut);
  else if (what == "freezes")
    c.pause(host);
  else if (what == "thaws")
    c.resume(host);
  else
    return take_a_pause(c, host, what);
  return true;
}

result<void> about_node(cluster& c, const command& w) {
  const auto name = node_of(c, w.at(1));
  const auto what = rest(w, 2);
  if (what == "starts" || what == "joins") {
    if (!c.up(name) && !c.has_left(name))
      c.start_node(name);
  } else if (what == "is interrupted") {
    // By SIGTERM a node leaves after its workers have saved, where they can.
    c.interrupt(name, c.options().planned_end ? SIGTERM : SIGINT);
  } else if (what == "crashes") {
    // As soon as a keeper can, or later, because it has crashed before.
    auto& all = c.all();
    const bool first = all.random.chance(0.7);
    c.crash_supervisor(name, first ? all.between(2ms, 50ms) : all.between(100ms, 1s));
  } else if (!befall(c, name, what)) {
    return unknown(w);
  }
  return {};
}

/// Nothing gets through in these directions; in none it is as before.
void hold_link(cluster& c, const std::string& node, bool to_node, bool from_node) {
  const auto& master = cluster::master_name();
  const auto be = [&c](const std::string& from, const std::string& to, bool held) {
    held ? c.net().hold(from, to) : c.net().release(from, to);
  };
  be(master, node, to_node);
  be(node, master, from_node);
}

result<void> about_master(cluster& c, const command& w) {
  const auto& name = cluster::master_name();
  const auto what = rest(w, 1);
  if (what == "starts") {
    if (!c.up(name))
      c.start_master();
  } else if (w.size() == 4 && what.rfind("refuses dials", 0) == 0) {
    const auto time = parse_duration(w[3]);
    if (!time)
      return tl::make_unexpected(time.error());
    c.net().refuse_dials(name, c.now() + *time);
  } else if (what == "is cut off" || what == "is back") {
    for (std::uint32_t i = 1; i <= c.options().nodes; ++i)
      hold_link(c, cluster::node_name_of(i), what == "is cut off", what == "is cut off");
  } else if (!befall(c, name, what)) {
    return unknown(w);
  }
  return {};
}

result<void> about_worker(cluster& c, const command& w) {
  const auto alive = c.training().living_ranks();
  if (alive.empty())
    return {};
  auto process = c.training().find(w.at(1) == "?" ? 0 : std::stoul(w[1]));
  if (w[1] == "?")
    process = alive[c.all().random.below(alive.size())];
  if (!process)
    return {};
  if (w.size() == 4 && w[2] == "exits")
    c.training().exit(*process, {false, std::stoi(w[3])});
  else if (w.size() > 5 && w[2] == "exits" && w[4] == "saying")
    c.training().exit(*process, {false, std::stoi(w[3])}, rest(w, 5));
  else if (rest(w, 2) == "is hit by SIGSEGV")
    c.talk().hit(*process, SIGSEGV);
  else if (rest(w, 2) == "is killed")
    c.training().exit(*process, {true, SIGKILL});
  else
    return unknown(w);
  return {};
}

result<void> about_link(cluster& c, const command& w) {
  const auto node = node_of(c, w.at(1));
  const auto what = rest(w, 2);
  if (what == "drops")
    c.net().break_links(node);
  else if (what == "returns")
    hold_link(c, node, false, false);
  else if (what == "is cut")
    hold_link(c, node, true, true);
  else if (what == "is deaf")
    hold_link(c, node, true, false);
  else if (what == "is mute")
    hold_link(c, node, false, true);
  else
    return unknown(w);
  return {};
}

result<void> about_device(cluster& c, const command& w) {
  const auto what = rest(w, 2);
  if (what == "is broken")
    c.devices().broken.insert(node_of(c, w.at(1)));
  else if (what == "is repaired")
    c.devices().broken.erase(node_of(c, w.at(1)));
  else
    return unknown(w);
  return {};
}

/// Between two nodes, and not between either and the master.
result<void> about_route(cluster& c, const command& w) {
  const auto what = rest(w, 3);
  if (w.size() < 4 || (what != "is cut" && what != "returns"))
    return unknown(w);
  const auto a = node_of(c, w[1]), b = node_of(c, w[2]);
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    what == "is cut" ? c.net().hold(from, to) : c.net().release(from, to);
  return {};
}

result<void> about_weather(cluster& c, const command& w) {
  const auto node = node_of(c, w.at(1));
  const auto what = rest(w, 2);
  weather now;
  if (what == "lossy" || what == "rough") {
    now.delay_max = 20ms;
    now.frame_lost = now.frame_repeated = now.frame_overtaken = 0.02;
  }
  if (what == "rough")
    now.chunk_repeated = now.chunk_overtaken = 0.01;
  if (what == "slow") {
    now.delay_min = 20ms;
    now.delay_max = 400ms;
    now.bytes_per_ms = 20;
  }
  // Signs of life that come when they like.
  if (what == "jittery")
    now.delay_max = 200ms;
  static const std::set<std::string> known{"lossy", "rough", "slow", "jittery", "calm"};
  if (!known.count(what))
    return unknown(w);
  c.all().write(node, "! weather " + what);
  c.all().tell(&observer::weather_changed, node, what != "calm");
  c.net().around(node) = now;
  return {};
}

std::vector<kj::byte> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// A Hello as a later major version would send it.
std::vector<kj::byte> hello_of_another_version() {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<messages::Envelope>();
  messages::detail::write_envelope(root, {"n1/uplink"}, capnp::typeId<messages::Hello>());
  root.setVersion(messages::protocol_version + 1);
  root.getBody().initAs<messages::Hello>().setNode("n1");
  const auto raw = capnp::messageToFlatArray(builder);
  const auto header = link::encode({static_cast<std::uint32_t>(raw.size()), 1});
  std::vector<kj::byte> all(header.begin(), header.end());
  const auto body = raw.asBytes();
  all.insert(all.end(), body.begin(), body.end());
  return all;
}

result<void> about_stranger(cluster& c, const command& w) {
  const auto half = link::encode({1'000, 1});
  const auto huge = link::encode({UINT32_MAX, 1});
  const std::map<std::string, std::vector<kj::byte>> speeches{
      {"says nothing", {}},
      {"says garbage", bytes_of("GET / HTTP/1.1\r\nHost: master\r\n\r\n")},
      {"says half a frame", {half.begin(), half.end()}},
      {"says a huge length", {huge.begin(), huge.end()}},
      {"says another version", hello_of_another_version()}};
  const auto found = speeches.find(rest(w, 1));
  if (found == speeches.end())
    return unknown(w);
  c.all().write("-", "! a stranger " + found->first);
  c.net().stranger(cluster::master_name(), cluster::master_port, found->second);
  return {};
}

result<void> about_disk(cluster& c, const command& w) {
  const auto what = rest(w, 1);
  if (what == "fails")
    c.disk().fault = error{errc::unavailable, "no space left on device"};
  else if (what == "recovers")
    c.disk().fault.reset();
  else if (what == "is slow")
    c.disk().append_max = 800ms;
  else
    return unknown(w);
  c.all().write(cluster::master_name(), "! disk " + what);
  return {};
}

/// The directory that a node writes to: of all, or its own.
result<void> about_place(cluster& c, const command& w) {
  const auto name = node_of(c, w.at(1));
  const auto what = rest(w, 2);
  auto& place = c.saves().place_of(name);
  ++place.troubles;
  if (what == "is full")
    place.full = true;
  else if (what == "is slow")
    place.slow = true;
  else if (what == "is broken")
    place.broken = true;
  else if (what == "recovers")
    place.full = place.slow = place.broken = false;
  else if (what == "is replaced")
    c.saves().replace_disk(name);
  else if (what == "decays")
    c.saves().decay(name);
  else if (what == "loses power")
    c.saves().lose_power(name);
  else if (what == "is another job's too")
    c.saves().save_by_another_job(name);
  else
    return unknown(w);
  c.all().write(name, "! place " + what);
  return {};
}

result<void> about_training(cluster& c, const command& w) {
  if (w.size() == 5 && w[1] == "copies" && w[3] == "parity") {
    c.saves().copy(std::stoul(w[2]), static_cast<std::uint32_t>(std::stoul(w[4])));
    return {};
  }
  if (w.size() == 6 && rest(w, 1).rfind("reports a step every ", 0) == 0) {
    const auto every = parse_duration(w[5]);
    if (!every)
      return tl::make_unexpected(every.error());
    c.pages().every = *every;
    c.pages().world_size = c.options().nodes * c.options().slots;
    return {};
  }
  if (rest(w, 1) == "looks into memory") {
    c.saves().say_newest_in_memory();
    return {};
  }
  const bool all = w.size() == 3, but_one = w.size() == 5 && w[3] == "without";
  if (w[1] != "saves" || (!all && !but_one))
    return unknown(w);
  std::optional<global_rank> without;
  if (but_one)
    without = static_cast<global_rank>(std::stoul(w[4]));
  c.saves().save(std::stoul(w[2]), without);
  return {};
}

result<void> about_rank(cluster& c, const command& w) {
  const auto what = rest(w, 2);
  const auto& o = c.options();
  const auto rank = w.at(1) == "?" ? c.all().random.below(o.nodes * o.slots) : std::stoul(w[1]);
  if (what == "stands still")
    c.pages().stand_still(static_cast<global_rank>(rank));
  else if (what == "goes on")
    c.pages().go_on();
  else
    return unknown(w);
  c.all().write("-", "! rank " + w[1] + " " + what);
  return {};
}

/// "2:4"; "?" is any, and "back" what the job was started with.
result<void> scale(cluster& c, const command& w) {
  const auto& o = c.options();
  if (w[2] == "back") {
    c.scale(o.nodes_min, o.nodes_max);
    return {};
  }
  if (w[2] == "?") {
    auto& random = c.all().random;
    const auto most = static_cast<std::uint32_t>(1 + random.below(o.nodes));
    c.scale(static_cast<std::uint32_t>(1 + random.below(most)), most);
    return {};
  }
  const auto colon = w[2].find(':');
  if (colon == std::string::npos)
    return unknown(w);
  c.scale(static_cast<std::uint32_t>(std::stoul(w[2].substr(0, colon))),
          static_cast<std::uint32_t>(std::stoul(w[2].substr(colon + 1))));
  return {};
}

result<void> about_shell(cluster& c, const command& w) {
  if (w.size() == 3 && w[1] == "scales")
    return scale(c, w);
  if (rest(w, 1) != "asks")
    return unknown(w);
  c.ask_tree([&c](const auto& answer) {
    c.all().write("shell", answer ? "got the tree" : "got no tree: " + answer.error().what);
  });
  return {};
}

result<void> about_actor(cluster& c, const command& w) {
  if (w.size() != 4 || w[3] != "crashes")
    return unknown(w);
  c.crash_actor(w[1] == cluster::master_name() ? w[1] : node_of(c, w[1]), w[2]);
  return {};
}

} // namespace

result<void> inject(cluster& c, const command& w) {
  static const std::map<std::string, result<void> (*)(cluster&, const command&)> verbs{
      {"node", about_node},         {"master", about_master},   {"worker", about_worker},
      {"link", about_link},         {"weather", about_weather}, {"stranger", about_stranger},
      {"disk", about_disk},         {"actor", about_actor},     {"shell", about_shell},
      {"training", about_training}, {"place", about_place},     {"rank", about_rank},
      {"device", about_device},     {"route", about_route}};
  const auto verb = w.size() < 2 ? verbs.end() : verbs.find(w[0]);
  if (verb == verbs.end())
    return unknown(w);
  return verb->second(c, w);
}

command words_of(const std::string& line) {
  std::istringstream in(line);
  command all;
  for (std::string word; in >> word;)
    all.push_back(word);
  return all;
}

result<duration> parse_duration(const std::string& text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  const std::string unit = unit_at == std::string::npos ? "" : text.substr(unit_at);
  const std::map<std::string, double> seconds{{"ms", 1e-3}, {"s", 1}, {"min", 60}};
  const auto found = seconds.find(unit);
  if (unit_at == 0 || found == seconds.end())
    return failure(errc::invalid, fmt::format("'{}' is no duration", text));
  const double value = std::stod(text.substr(0, unit_at)) * found->second;
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(value));
}

} // namespace troupe::sim
