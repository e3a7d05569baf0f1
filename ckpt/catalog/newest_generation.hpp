#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <string_view>

/// Which generation may complete steps at a place: none that is older than one that has.
///
/// After a cut of the network both sides may train and write to one directory. Generations of two
/// masters are ordered (runtime/base/generations.hpp), so the directory itself can tell the older
/// side to stop: what the newer one has completed stays the newest, and is what retention keeps.
///
/// On record is an empty file for each, `.troupe/generations/<number>`. One file for all would be
/// set back by a process that has looked before another one wrote it; of many the highest counts,
/// and no order of writers can lower that.
namespace troupe::ckpt {

/// What every refusal says: each save that follows is refused as well.
inline constexpr std::string_view refused_for_newer = "saves nothing here any more";

/// The newest of those on record; none: no generation.
result<generation> newest_on_record(ports::storage& storage);

/// `refused` if a newer generation has completed a step here. A process without a generation, which
/// no master has started, is never refused.
result<void> check_newest(ports::storage& storage, generation which);

/// Before a step of this generation becomes complete; `refused` like check_newest. From then on
/// older generations are.
result<void> become_newest(ports::storage& storage, generation which);

} // namespace troupe::ckpt
