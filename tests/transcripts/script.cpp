#include "tests/transcripts/script.hpp"

#include <sstream>
#include <utility>

namespace troupe::transcripts {

namespace {

constexpr const char* rule = "----";

bool is_prose(const std::string& line) {
  return line.empty() || line.front() == '#';
}

} // namespace

std::vector<block> parse(const std::string& text) {
  std::vector<block> blocks(1);
  std::istringstream in(text);
  bool in_output = false;
  for (std::string line; std::getline(in, line);) {
    auto& b = blocks.back();
    if (in_output && !line.empty()) {
      b.output.push_back(line);
    } else if (in_output) {
      in_output = false;
      blocks.emplace_back();
    } else if (line == rule) {
      in_output = true;
    } else if (is_prose(line)) {
      b.prose.push_back(line);
    } else {
      b.command = line;
    }
  }
  return blocks;
}

std::string to_text(const std::vector<block>& blocks) {
  std::string text;
  for (const auto& b : blocks) {
    for (const auto& line : b.prose)
      text += line + '\n';
    if (b.command.empty())
      continue;
    text += b.command + '\n' + rule + '\n';
    for (const auto& line : b.output)
      text += line + '\n';
    text += '\n';
  }
  while (text.size() > 1 && text[text.size() - 1] == '\n' && text[text.size() - 2] == '\n')
    text.pop_back();
  return text;
}

} // namespace troupe::transcripts
