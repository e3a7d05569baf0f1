#pragma once

#include <string>
#include <vector>

namespace troupe::transcripts {

/// A transcript: prose, and commands with what followed from them.
///
///     # What the reader should know. Blank lines and lines that begin with # are kept as they are.
///     node 2 joins
///     ----
///     0.103 n2 -> master  Hello() (…)
///
/// The output ends at the first blank line.
struct block {
  std::vector<std::string> prose; ///< before the command
  std::string command;            ///< empty only in the last block
  std::vector<std::string> output;
};

std::vector<block> parse(const std::string& text);
std::string to_text(const std::vector<block>& blocks);

} // namespace troupe::transcripts
