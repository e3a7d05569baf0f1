// The messages of the catalog, from its own state.

#include "actors/master/catalog/catalog_core.hpp"

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

/// A node writes its shards in the order of saves and reports them in that order. So when all of a
/// step's are reported, every older save that may still become complete is open here.
std::uint64_t catalog_core::open_from(const step_key& which) const {
  auto first = which.save;
  for (const auto& [key, s] : open_)
    if (key.place == which.place && key.made_by == which.made_by)
      first = std::min(first, key.save);
  return first;
}

any_msg catalog_core::finalized(const step_key& which, const ending& how) {
  return author_
      .write<StepFinalized>(which.made_by,
                            [&](StepFinalized::Builder b) {
                              write_key(b.initKey(), which);
                              b.setComplete(how.complete);
                              b.setWhy(how.why);
                              b.setOpenFrom(how.open_from);
                            })
      .any();
}

} // namespace troupe::actors
