#include "tests/sim/plan.hpp"

#include "runtime/base/invariant.hpp"
#include "tests/sim/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

namespace troupe::sim {

namespace {

result<plan::step> parse_step(const std::string& line) {
  auto words = words_of(line);
  if (words.size() < 3 || words[0] != "at")
    return failure(errc::invalid, fmt::format("'{}' is no step of a plan", line));
  const auto dots = words[1].find("..");
  const auto from = parse_duration(words[1].substr(0, dots));
  const auto to = dots == std::string::npos ? from : parse_duration(words[1].substr(dots + 2));
  if (!from || !to || *to < *from)
    return failure(errc::invalid, fmt::format("'{}' is no time", words[1]));
  plan::step s{*from, *to, 1, {}, {}, {}};
  std::size_t next = 2;
  if (words[next] == "after") {
    const auto behind = parse_duration(words.at(4));
    if (!behind)
      return tl::make_unexpected(behind.error());
    s.after = words.at(3);
    if (!messages::kind_named(s.after))
      return failure(errc::invalid, fmt::format("no message is called '{}'", s.after));
    s.behind = *behind;
    next = 5;
  }
  if (words.at(next) == "chance") {
    s.chance = std::stod(words.at(next + 1));
    next += 2;
  }
  s.words.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return s;
}

/// A fault, and what ends it some time later; how often it is drawn relative to the others.
struct kind {
  unsigned weight;
  const char* fault;
  const char* relief;
};

constexpr kind kinds[] = {
    {6, "worker ? exits 7", nullptr},
    {6, "worker ? is killed", nullptr},
    {1, "worker ? exits 201", nullptr},
    {1, "worker ? exits 1 saying uncorrectable ECC error encountered", nullptr},
    {8, "node N dies", "node N starts"},
    {12, "node N crashes", nullptr},
    {6, "node N loses power", "node N starts"},
    {8, "node N freezes", "node N thaws"},
    {8, "node N pauses 900ms", nullptr},
    {4, "master pauses 900ms", nullptr},
    {1, "node N is interrupted", "node N starts"},
    {1, "node N is interrupted", "node N is interrupted"},
    {8, "master dies", "master starts"},
    {3, "master loses power", "master starts"},
    {5, "master freezes", "master thaws"},
    {3, "master is cut off", "master is back"},
    {10, "link N drops", nullptr},
    {8, "link N is cut", "link N returns"},
    {5, "link N is deaf", "link N returns"},
    {5, "link N is mute", "link N returns"},
    {6, "weather N lossy", "weather N calm"},
    {4, "weather N rough", "weather N calm"},
    {4, "weather N slow", "weather N calm"},
    {4, "weather N jittery", "weather N calm"},
    {3, "master refuses dials 3s", nullptr},
    {1, "stranger says nothing", nullptr},
    {1, "stranger says garbage", nullptr},
    {1, "stranger says half a frame", nullptr},
    {1, "stranger says a huge length", nullptr},
    {1, "stranger says another version", nullptr},
    {6, "shell asks", nullptr},
    {4, "shell scales ?", "shell scales back"},
    {2, "disk is slow", "disk recovers"},
    {2, "disk fails", "disk recovers"},
    {3, "actor master journal crashes", nullptr},
    {3, "actor master membership crashes", nullptr},
    {3, "actor master rendezvous crashes", nullptr},
    {3, "actor master recovery crashes", nullptr},
    {1, "actor master job crashes", nullptr},
    {3, "actor master catalog crashes", nullptr},
    {2, "actor master gateway crashes", nullptr},
    {3, "actor N agent crashes", nullptr},
    {3, "actor N uplink crashes", nullptr},
    {3, "actor N persister crashes", nullptr},
    {2, "actor N replicator crashes", nullptr},
};

/// What checkpoints have to get through.
constexpr kind storage_kinds[] = {
    {8, "worker ? is killed", nullptr},           {6, "node N dies", "node N starts"},
    {6, "node N loses power", "node N starts"},   {8, "node N crashes", nullptr},
    {4, "node N freezes", "node N thaws"},        {3, "node N is interrupted", "node N starts"},
    {3, "link N is cut", "link N returns"},       {4, "master dies", "master starts"},
    {2, "master loses power", "master starts"},   {2, "master freezes", "master thaws"},
    {3, "actor master catalog crashes", nullptr}, {4, "actor N checkpoint_saver crashes", nullptr},
    {3, "actor N agent crashes", nullptr},        {6, "place N is full", "place N recovers"},
    {6, "place N is slow", "place N recovers"},   {6, "place N is broken", "place N recovers"},
    {3, "place N is replaced", nullptr},          {3, "place N loses power", nullptr},
    {1, "place N is another job's too", nullptr}, {2, "place N decays", nullptr},
};

template<std::size_t Count>
const kind& draw(random_source& random, const kind (&from)[Count]) {
  unsigned total = 0;
  for (const auto& k : from)
    total += k.weight;
  auto at = random.below(total);
  for (const auto& k : from) {
    if (at < k.weight)
      return k;
    at -= k.weight;
  }
  return from[0];
}

/// Around these a generation, a verdict or a step of a checkpoint is half told.
constexpr const char* moments[] = {
    "Prepare", "Prepared", "GenerationSealed", "Start",       "Running",   "Failed", "Stop",
    "Stopped", "Hello",    "Conclude",         "ShardReport", "CommitStep"};

/// Waits for one message or record, once.
class moment final : public observer {
 public:
  moment(std::string kind, std::function<void()> then)
      : kind_(std::move(kind)), then_(std::move(then)) {
    invariant(messages::kind_named(kind_).has_value(), "no message is called " + kind_);
  }

  void wait() { waits_ = true; }
  void dialled(const std::string&, const messages::msg<messages::Hello>& hello) override {
    look_at(hello.any());
  }
  void sent(const std::string&, const std::string&, const messages::any_msg& m) override {
    look_at(m);
  }
  void recorded(const messages::any_msg& record) override { look_at(record); }

 private:
  void look_at(const messages::any_msg& m) {
    if (waits_ && messages::kind_name(m.kind()) == kind_ && std::exchange(waits_, false))
      then_();
  }

  const std::string kind_;
  const std::function<void()> then_;
  bool waits_ = false;
};

std::vector<std::string> with_node(const char* text, const std::string& node) {
  auto words = words_of(text);
  for (auto& w : words)
    if (w == "N")
      w = node;
  return words;
}

/// One node is away with what it has in memory, the others train on without it and then lose their
/// memory, and it comes back: what it holds has been overtaken by what is on disks.
void add_a_node_that_was_away(plan& p, random_source& random, duration span, std::uint64_t nodes) {
  const auto some = [&random](std::uint64_t least, std::uint64_t more) {
    return std::chrono::milliseconds(least + random.below(more));
  };
  const auto away = 1 + random.below(nodes);
  const auto goes = duration(some(2'000, 10'000)), end = goes + some(6'000, 12'000);
  const auto add = [&p, span](duration when, const char* what, std::uint64_t node) {
    if (when < span)
      p.steps.push_back({when, when, 1, {}, {}, with_node(what, std::to_string(node))});
  };
  add(goes, "link N is cut", away);
  for (std::uint64_t node = 1; node <= nodes; ++node)
    if (node != away) {
      add(end, "node N dies", node);
      add(end + some(50, 1'000), "node N starts", node);
    }
  add(end + some(0, 1'000), "link N returns", away);
}

} // namespace

result<plan> plan::parse(const std::string& name, const std::string& text) {
  plan p{name, {}};
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#')
      continue;
    auto s = parse_step(line);
    if (!s)
      return tl::make_unexpected(s.error());
    p.steps.push_back(std::move(*s));
  }
  return p;
}

result<plan> plan::load(const std::string& directory, const std::string& name) {
  const auto path = fmt::format("{}/{}.txt", directory, name);
  std::ifstream in(path);
  if (!in)
    return failure(errc::invalid, fmt::format("there is no plan {}", path));
  std::stringstream text;
  text << in.rdbuf();
  return parse(name, text.str());
}

plan plan::random(random_source& random, duration span, std::uint64_t nodes, bool of_storage) {
  plan p{of_storage ? "storage" : "random", {}};
  const auto count = of_storage ? 3 + random.below(20) : random.below(14);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto& k = of_storage ? draw(random, storage_kinds) : draw(random, kinds);
    const auto node = std::to_string(1 + random.below(std::min<std::uint64_t>(nodes, 4)));
    const auto when = duration(
        static_cast<duration::rep>(random.below(static_cast<std::uint64_t>(span.count()))));
    plan::step s{when, when, 1, {}, {}, with_node(k.fault, node)};
    if (random.chance(0.5)) {
      s.after = moments[random.below(std::size(moments))];
      s.behind = 3ms;
    }
    p.steps.push_back(std::move(s));
    if (!k.relief)
      continue;
    // Some are over before anybody can notice, some outlast every grace period.
    const auto lasts = random.chance(0.5) ? std::chrono::milliseconds(20 + random.below(2'500))
                                          : std::chrono::milliseconds(2'500 + random.below(12'000));
    p.steps.push_back({when + lasts, when + lasts, 1, {}, {}, with_node(k.relief, node)});
  }
  if (of_storage && random.chance(0.25))
    add_a_node_that_was_away(p, random, span, nodes);
  return p;
}

void plan::schedule(cluster& c, duration lasts) const {
  auto& w = c.all();
  for (const auto& s : steps) {
    const auto delay = w.between(s.from, s.to);
    if (!w.random.chance(s.chance))
      continue;
    auto happens = [&c, words = s.words, until = c.now() + lasts] {
      if (c.now() >= until)
        return; // its message came late, or it is a relief: all is healed then
      if (c.verdict() && words.back() == "starts")
        return; // a launcher of a job that is over is not started
      const auto done = inject(c, words);
      invariant(done.has_value(), done ? "" : done.error().what);
    };
    if (s.after.empty()) {
      w.events.in(delay, std::move(happens));
      continue;
    }
    const auto when = std::make_shared<moment>(
        s.after, [&w, happens, behind = s.behind] { w.events.in(w.between({}, behind), happens); });
    w.observers.push_back(when);
    w.events.in(delay, [when] { when->wait(); });
  }
}

} // namespace troupe::sim
