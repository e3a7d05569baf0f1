// The messages of the catalog, from its own state, and what it says to people.

#include "actors/master/catalog/catalog_core.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

any_msg catalog_core::commit_step(const step_key& which, const step& s) {
  return author_
      .write<CommitStep>(which.made_by,
                         [&](CommitStep::Builder b) {
                           write_key(b.initKey(), which);
                           b.setWorldSize(s.world_size);
                           b.setCommitted(s.is_complete());
                           auto files = b.initFiles(static_cast<unsigned>(s.files.size()));
                           unsigned i = 0;
                           for (const auto& [shard, f] : s.files) {
                             files[i].setName(f.name);
                             files[i].setBytes(f.what.bytes);
                             files[i].setCrc32(f.what.crc32);
                             files[i++].setNode(f.node);
                           }
                         })
      .any();
}

/// A node writes its shards in the order of saves and reports them in that order. So when a step
/// ends, every older save that may still become complete is open here, or was never reported: then
/// it ends without having been complete.
ckpt::save_id catalog_core::open_from(const step_key& which) const {
  auto first = which.id();
  // The step itself has ended.
  ++first.number;
  for (const auto& [key, s] : open_)
    if (key.place == which.place)
      first = std::min(first, key.id());
  return first;
}

any_msg catalog_core::finalized(const step_key& which, const ending& how) {
  return author_
      .write<StepFinalized>(which.made_by,
                            [&](StepFinalized::Builder b) {
                              write_key(b.initKey(), which);
                              b.setComplete(how.complete);
                              b.setWhy(how.why);
                              b.setOpenFrom(how.open_from.number);
                              b.setOpenFromGeneration(how.open_from.made_by.value);
                            })
      .any();
}

/// What `actor-shell tree` shows beside the catalog.
std::string catalog_core::in_words() const {
  const auto last =
      last_complete_.empty() ? std::string{} : "; the last complete one is " + last_complete_;
  if (open_.empty())
    return "no step is being saved" + last;
  const auto newest =
      std::max_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
        return a.second.since < b.second.since;
      });
  return fmt::format("{} being saved, the newest {}{}", counted(open_.size(), "step"),
                     newest->first.step, last);
}

} // namespace troupe::actors
