#include "tests/transcripts/scene.hpp"
#include "tests/transcripts/script.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

/// Plays transcripts and compares; with --rewrite the files are made to say what was seen. Commit
/// only what you can explain.
namespace {

using namespace troupe;
using namespace troupe::transcripts;

std::string content_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void show_difference(const std::vector<std::string>& expected,
                     const std::vector<std::string>& seen) {
  const auto both = std::max(expected.size(), seen.size());
  for (std::size_t i = 0; i < both; ++i) {
    const auto* e = i < expected.size() ? &expected[i] : nullptr;
    const auto* s = i < seen.size() ? &seen[i] : nullptr;
    if (e && s && *e == *s)
      continue;
    if (e)
      fmt::print("    - {}\n", *e);
    if (s)
      fmt::print("    + {}\n", *s);
  }
}

/// Whether every command was followed by what the file says.
bool play(const std::string& path, bool rewrite) {
  auto blocks = parse(content_of(path));
  if (blocks.size() < 2) {
    fmt::print("{}: no commands\n", path);
    return false;
  }
  scene on;
  bool same = true;
  for (auto& b : blocks) {
    if (b.command.empty())
      continue;
    auto seen = on.play(b.command);
    if (!seen) {
      fmt::print("{}: {}: {}\n", path, b.command, seen.error().what);
      return false;
    }
    if (*seen != b.output && !rewrite) {
      fmt::print("{}: {}\n", path, b.command);
      show_difference(b.output, *seen);
      same = false;
    }
    b.output = std::move(*seen);
  }
  if (rewrite)
    std::ofstream(path) << to_text(blocks);
  return same;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files(argv + 1, argv + argc);
  const bool rewrite = !files.empty() && files.front() == "--rewrite";
  if (rewrite)
    files.erase(files.begin());
  if (files.empty()) {
    fmt::print(stderr, "usage: play_transcripts [--rewrite] FILE…\n");
    return 2;
  }
  bool all = true;
  for (const auto& file : files)
    all = play(file, rewrite) && all;
  return all ? 0 : 1;
}
