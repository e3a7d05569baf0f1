#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "tests/sim/cluster.hpp"

#include <string>
#include <vector>

namespace troupe::sim {

/// What fate and operators can do, in words; the vocabulary of fault plans and of transcripts.
///
///     node N starts              a launcher is started, or started again with a new incarnation
///     node N dies                kill -9 of the launcher
///     node N crashes             kill -9 of the node supervisor; its keeper starts another
///     node N loses power         the machine goes, no peer is told
///     node N freezes | thaws     SIGSTOP, SIGCONT of the launcher
///     node N pauses T            both, with so much time between them
///     node N is interrupted      Ctrl-C
///     master starts | dies | loses power | freezes | thaws | pauses T
///     training saves S           every rank wants step S written
///     training saves S without R    but one, which has not got to it
///     training copies S parity P    every rank wants step S held by others, of whom P may be lost
///     training looks into memory    for the newest step that all ranks could have again
///     training reports a step every T    from now on, in the pages of all ranks
///     worker R exits C | is killed      the process of global rank R in the newest generation
///     worker R is hit by SIGSEGV        and tells its supervisor first, where it has a channel
///     rank R stands still | goes on     in its data loader, where the ranks have pages
///     link N drops               reset; what is in flight is cut somewhere
///     link N is cut              nothing gets through either way, until `link N returns`
///     link N is deaf | is mute   nothing gets through to the node, or from it, until
///                                `link N returns`
///     link N returns
///     route N M is cut | returns between two nodes; both reach the master
///     device N is broken | is repaired
///                                what the node finds out when it probes itself
///     weather N lossy | rough | slow | jittery | calm
///                                lost and repeated frames; all that and torn chunks; a thin line;
///                                delays of any length up to 200 ms; none
///     master refuses dials T
///     stranger says nothing | garbage | half a frame | a huge length | another version
///     disk fails | recovers | is slow
///                                the master's journal
///     place N is full | is slow | is broken | recovers
///                                the checkpoint directory that the node writes to
///     place N is replaced        a directory of the node's own is empty now
///     place N decays             a byte of a shard, manifest or marker is another one
///     place N loses power        what is not durable there has never been
///     place N is another job's too
///                                which completes a step of its own there
///     shell asks                 for the tree; nothing is done with the answer
///     shell scales L:H | ? | back   worlds of L to H nodes from now on; of any size; as at the
///     start actor H ROLE crashes       H is "master" or a node's number; a bug in that actor
///
/// N is a node's number or `?` for any, R likewise a rank.
result<void> inject(cluster& c, const std::vector<std::string>& words);

std::vector<std::string> words_of(const std::string& line);

/// "300ms", "2.5s", "2min".
result<duration> parse_duration(const std::string& text);

} // namespace troupe::sim
