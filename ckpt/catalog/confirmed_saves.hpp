#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <set>

/// Which saves every node that has a part of them has completed, as far as verdicts have said so at
/// this place.
///
/// Where each node has a directory of its own, a manifest says only that this node has completed
/// the step. One that was given up because another node has not must not count for retention: the
/// step before it may be the last that all nodes have. What is not on record, since the process
/// ended before that or a version without records has saved here, stays longer and harms nothing.
///
/// On record is an empty file for each, `.troupe/confirmed/<generation>-<number>`, so that no
/// writer can set back another's.
namespace troupe::ckpt {

result<std::set<save_id>> confirmed_saves(ports::storage& storage);

result<void> confirm_save(ports::storage& storage, const save_id& which);

/// Its steps have been removed, or are another save's by now.
result<void> forget_save(ports::storage& storage, const save_id& which);

} // namespace troupe::ckpt
