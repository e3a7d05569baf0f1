#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/log.hpp"
#include "runtime/ports/transport.hpp"

#include <string>
#include <vector>

namespace troupe::launch {

/// On the master's node the master tells the story of the whole job. Elsewhere the node's own part
/// is what there is to tell: its `info` events become `notice`, other than the coming and going of
/// actors.
log::sink told_by_node(log::sink to);

/// What a user should know before anything else: remarks about the options.
std::vector<log::event> remarks_on(const launcher_options& o);

/// Which job this is, what runs it, where its files are, and the command that looks into it.
/// `log_directory`: empty if the user asked for none. `today`: with the zone; lines have a time
/// only.
std::vector<log::event> first_lines(const launcher_options& o, const std::string& today,
                                    const std::string& log_directory,
                                    const ports::endpoint& master);

/// `to`, with these lines before the first event that says that this node has a link to its master:
/// a job that cannot begin ends with one line that says why.
log::sink told_once_linked(log::sink to, const std::string& component,
                           std::vector<log::event> lines);

/// What it came to. `stopped_by`: the user's signal; 0: it ended by itself.
struct run_end {
  bool success = false;
  int stopped_by = 0;
  duration took{};
  std::uint32_t restarts = 0;
  std::string log_directory; ///< empty if the user asked for none
  std::string checkpoint;    ///< the last complete one in words: see last_checkpoint
};
/// Of a failed job the summary follows.
log::event last_line(const run_end& r);

} // namespace troupe::launch
