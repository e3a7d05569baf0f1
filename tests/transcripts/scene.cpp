#include "tests/transcripts/scene.hpp"

#include "tests/sim/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace troupe::transcripts {

namespace {

constexpr auto consequences_take = 100ms;

/// A line of the trace, in its columns; see tests/sim/trace.hpp.
struct traced {
  std::string time;
  std::string who;
  std::string what;
};

traced columns_of(const std::string& line) {
  const auto time_end = line.find_first_not_of(' ') == std::string::npos
                            ? 0
                            : line.find(' ', line.find_first_not_of(' '));
  const auto who_end = line.find(' ', time_end + 1);
  const auto what = line.find_first_not_of(' ', who_end);
  const auto time_begin = line.find_first_not_of(' ');
  // Microseconds are the trace's business.
  return {line.substr(time_begin, time_end - time_begin - 3),
          line.substr(time_end + 1, who_end - time_end - 1),
          what == std::string::npos ? "" : line.substr(what)};
}

bool begins(const std::string& text, const char* with) {
  return text.rfind(with, 0) == 0;
}

/// What repeats another line, or is supervision at its daily work.
bool tells_nothing(const std::string& what) {
  return begins(what, "<") || begins(what, "up ") || what.find(" proven") != std::string::npos ||
         what.find(": debug ") != std::string::npos ||
         what.find("ended: as it should") != std::string::npos;
}

/// What the log shows without -v, at the master and at nodes.
bool is_story(const std::string& what) {
  for (const char* level : {": notice ", ": warning ", ": error "})
    if (what.find(level) != std::string::npos)
      return true;
  return false;
}

/// "rank 3 (worker, down): rank 3 (pid 1002) is gone; ended: exit code 7", and what was counted.
std::string row_of(const messages::TreeNode::Reader& n) {
  const std::string state = n.getState().cStr();
  std::vector<std::string> told;
  if (n.getPhase().size() > 0)
    told.emplace_back(n.getPhase().cStr());
  for (const auto budget : n.getBudgets())
    if (budget.getUsed() > 0)
      told.push_back(fmt::format(
          "{}restarts {}/{}",
          budget.getOf().size() > 0 ? std::string(budget.getOf().cStr()) + " has " : std::string(),
          budget.getUsed(), budget.getAllowed()));
  if (n.hasLastEnd() && n.getLastEnd().getWhy().size() > 0)
    told.push_back("ended: " + std::string(n.getLastEnd().getWhy().cStr()));
  return fmt::format("{} ({}{}){}{}", n.getName().cStr(), n.getKind().cStr(),
                     state == "running" ? "" : ", " + state, told.empty() ? "" : ": ",
                     fmt::join(told, "; "));
}

/// The row and those below it; with `parts`, only what is called so, and what is below that.
void show(const messages::TreeNode::Reader& n, const std::vector<std::string>& parts,
          unsigned depth, std::vector<std::string>& out) {
  const std::string name = n.getName().cStr();
  const bool all = parts.empty() || std::find(parts.begin(), parts.end(), name) != parts.end();
  if (all)
    out.push_back(std::string(2 * depth, ' ') + row_of(n));
  for (const auto child : n.getChildren())
    show(child, all ? std::vector<std::string>{} : parts, all ? depth + 1 : depth, out);
}

} // namespace

result<std::vector<std::string>> scene::play(const std::string& command) {
  seen_.clear();
  const auto words = sim::words_of(command);
  result<void> done;
  if (words.at(0) == "nodes") {
    done = set_up(words);
  } else if (!cluster_) {
    return failure(errc::invalid, "a transcript begins with 'nodes N'");
  } else if (words[0] == "story" && words.size() == 1) {
    story_only_ = true;
  } else if (words[0] == "tree") {
    done = show_tree({words.begin() + 1, words.end()});
  } else if (words[0] == "advance" && words.size() == 2) {
    const auto time = sim::parse_duration(words[1]);
    if (!time)
      return tl::make_unexpected(time.error());
    cluster_->run_for(*time);
  } else if (words[0] == "for" && words.size() > 2) {
    const auto time = sim::parse_duration(words[1]);
    if (!time)
      return tl::make_unexpected(time.error());
    done = sim::inject(*cluster_, {words.begin() + 2, words.end()});
    cluster_->run_for(*time);
  } else {
    done = sim::inject(*cluster_, words);
    cluster_->run_for(consequences_take);
  }
  if (!done)
    return tl::make_unexpected(done.error());
  return seen_;
}

result<void> scene::set_up(const std::vector<std::string>& words) {
  sim::cluster_options o;
  o.in_order = true;
  o.trainers.startup_min = o.trainers.startup_max = 10ms;
  o.trainers.notices_min = o.trainers.notices_max = 20ms;
  o.trainers.training = 1h;
  o.checkpoints.write_min = o.checkpoints.write_max = 20ms;
  o.checkpoints.save_within = 600s;
  o.nodes = o.nodes_max = o.nodes_min = static_cast<std::uint32_t>(std::stoul(words.at(1)));
  std::optional<duration> steps, channel;
  bool have_library = false;
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    const auto& name = words[i];
    const auto time = sim::parse_duration(words[i + 1]);
    const auto number = static_cast<std::uint32_t>(std::stoul(words[i + 1]));
    if (name == "slots")
      o.slots = number;
    else if (name == "min")
      o.nodes_min = number;
    else if (name == "max")
      o.nodes_max = number;
    else if (name == "unit")
      o.unit = number;
    else if (name == "restarts")
      o.max_restarts = number;
    else if (name == "lease" && time)
      o.lease = *time;
    else if (name == "last-call" && time)
      o.last_call = *time;
    else if (name == "training" && time)
      o.trainers.training = *time;
    else if (name == "steps" && time)
      steps = *time;
    else if (name == "channel" && time)
      channel = *time;
    else if (name == "check")
      o.checks_nodes = (o.check_bytes = number) > 0;
    else if (name == "library")
      have_library = number > 0;
    else if (name == "notices")
      o.trainers.hangs = number == 0;
    else if (name == "writes" && time)
      o.checkpoints.write_min = o.checkpoints.write_max = *time;
    else
      return failure(errc::invalid, fmt::format("'nodes' knows no {}", name));
  }
  cluster_ = std::make_unique<sim::cluster>(o);
  cluster_->pages().every = steps;
  if (have_library)
    cluster_->devices().collectives = "NCCL 2.27.3";
  cluster_->talk().dials_after = channel;
  cluster_->pages().world_size = o.nodes * o.slots;
  cluster_->net().everywhere().delay_min = cluster_->net().everywhere().delay_max = 1ms;
  cluster_->disk().append_min = cluster_->disk().append_max = 1ms;
  cluster_->all().story.on_line = [this](const std::string& line) { see(line); };
  cluster_->start_master();
  cluster_->run_for(consequences_take);
  return {};
}

result<void> scene::show_tree(const std::vector<std::string>& parts) {
  std::optional<result<messages::msg<messages::TreeReport>>> answer;
  // What passes between shell and master is of no interest here.
  const auto before = std::exchange(cluster_->all().story.on_line, {});
  cluster_->ask_tree([&answer](auto a) { answer = std::move(a); });
  cluster_->run_for(15s, [&answer] { return answer.has_value(); });
  cluster_->all().story.on_line = before;
  if (!answer)
    return failure(errc::unavailable, "the shell got no answer in time");
  if (!*answer)
    return tl::make_unexpected(answer->error());
  auto report = (*answer)->read();
  for (auto root : report->getRoots())
    show(root, parts, 0, seen_);
  return {};
}

void scene::see(const std::string& line) {
  const auto t = columns_of(line);
  if (tells_nothing(t.what) || (story_only_ && !is_story(t.what)))
    return;
  auto what = t.what;
  if (begins(what, "> ")) {
    const auto to = what.substr(2, what.find(' ', 2) - 2);
    seen_.push_back(with_short_numbers(
        fmt::format("{} {} -> {} {}", t.time, t.who, to, what.substr(2 + to.size() + 1))));
    return;
  }
  for (const char* level : {": info ", ": notice ", ": warning ", ": error "})
    if (const auto at = what.find(level); at != std::string::npos && begins(level, ": "))
      what.replace(at, std::string(level).size(), ": ");
  const auto who = begins(what, "master/") ? std::string() : t.who + " ";
  seen_.push_back(with_short_numbers(fmt::format("{} {}{}", t.time, who, what)));
}

std::string scene::with_short_numbers(std::string text) {
  const std::string key = "incarnation = ";
  for (auto at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
    at += key.size();
    const auto number = text.substr(at, text.find_first_not_of("0123456789", at) - at);
    const auto known = incarnations_.emplace(number, incarnations_.size() + 1).first->second;
    text.replace(at, number.size(), fmt::format("#{}", known));
  }
  return text;
}

} // namespace troupe::transcripts
