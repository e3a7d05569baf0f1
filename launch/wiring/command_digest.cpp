#include "launch/wiring/command_digest.hpp"

#include "runtime/base/fnv1a.hpp"

#include <filesystem>

namespace troupe::launch {

namespace {

/// Words one after the other: "a b" is not "ab".
class digest {
 public:
  void take(const std::string& word) {
    hash_.take(word);
    hash_.take(std::uint8_t{0});
  }
  /// Never 0, which means "not compared".
  std::uint64_t value() const { return hash_.value() == 0 ? 1 : hash_.value(); }

 private:
  fnv1a hash_;
};

/// The names of characters that would break a line are for the log to care about.
std::string shortened(std::string text) {
  constexpr std::size_t most = 120;
  if (text.size() > most)
    text = text.substr(0, most) + "...";
  return text;
}

} // namespace

actors::command_identity command_of(const launcher_options& o) {
  if (o.command.empty())
    return {};
  const auto name =
      o.module ? o.command.front() : std::filesystem::path(o.command.front()).filename().string();
  digest script;
  script.take(name);
  const bool interchangeable = o.rdzv_id == launcher_options{}.rdzv_id && !o.rendezvous.node_rank;
  digest arguments;
  std::string text = name;
  for (std::size_t i = 1; i < o.command.size(); ++i) {
    arguments.take(o.command[i]);
    text += " " + o.command[i];
  }
  return {shortened(interchangeable ? text : name), script.value(),
          interchangeable ? arguments.value() : 0};
}

} // namespace troupe::launch
