#pragma once

#include "ckpt/copies/target_core.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

/// What sources say to a target_core, and what it does about that, for tests.
namespace troupe::ckpt::testing {

struct beginning {
  std::uint64_t generation = 1, step = 10;
  std::uint32_t world_size = 100, local_rank = 0, parity = 1;
  std::vector<std::uint32_t> ranks = {20, 21};
  std::uint32_t source = 1, target = 0;
  std::uint64_t bytes = 10;
  std::uint64_t whole_generation = 0, whole_step = 0;
  std::uint64_t save = 0; ///< with its place: place_id.hpp
};

inline messages::any_msg say(const beginning& b) {
  return messages::build<messages::CopyBegin>({"source"},
                                              [&b](messages::CopyBegin::Builder out) {
                                                auto key = out.initKey();
                                                key.setGeneration(b.generation);
                                                key.setStep(b.step);
                                                key.setWorldSize(b.world_size);
                                                key.setSave(b.save);
                                                out.setLocalRank(b.local_rank);
                                                out.setParity(b.parity);
                                                auto ranks = out.initRanks(
                                                    static_cast<unsigned>(b.ranks.size()));
                                                for (unsigned i = 0; i < b.ranks.size(); ++i)
                                                  ranks.set(i, b.ranks[i]);
                                                out.setSource(b.source);
                                                out.setTarget(b.target);
                                                out.setBytes(b.bytes);
                                                if (b.whole_step == 0)
                                                  return;
                                                auto whole = out.initWhole();
                                                whole.setGeneration(b.whole_generation);
                                                whole.setStep(b.whole_step);
                                              })
      .any();
}

inline messages::any_msg say_piece(std::uint32_t stripe, std::uint64_t offset,
                                   const std::string& content) {
  return messages::build<messages::CopyPiece>(
             {"source"},
             [&](messages::CopyPiece::Builder out) {
               out.setStripe(stripe);
               out.setOffset(offset);
               out.setContent({reinterpret_cast<const kj::byte*>(content.data()), content.size()});
             })
      .any();
}

inline messages::any_msg say_end(std::uint32_t crc32 = 0) {
  return messages::build<messages::CopyEnd>(
             {"source"}, [crc32](messages::CopyEnd::Builder out) { out.setCrc32(crc32); })
      .any();
}

inline std::string in_words(const messages::any_msg& m) {
  if (m.is<messages::CopyTaken>())
    return fmt::format("taken {}", m.as<messages::CopyTaken>().read()->getBytes());
  if (m.is<messages::CopyHeld>())
    return "held";
  if (m.is<messages::CopyRefused>())
    return fmt::format("refused: {}", m.as<messages::CopyRefused>().read()->getWhy().cStr());
  return messages::kind_name(m.kind());
}

struct effect_in_words {
  std::string operator()(const target_core::open& o) const {
    return fmt::format("open {} in {}: {}", o.which, o.local, o.bytes - held_piece::bytes_before);
  }
  std::string operator()(const target_core::grow& g) const {
    return fmt::format("grow {}: {}", g.which, g.bytes - held_piece::bytes_before);
  }
  std::string operator()(const target_core::add& a) const {
    return fmt::format("add {} at {} fresh {} times {}", a.which, a.offset, a.fresh, a.times);
  }
  std::string operator()(const target_core::finish& f) const {
    return fmt::format("finish {}: {}", f.which, f.snapshot.bytes - held_piece::bytes_before);
  }
  std::string operator()(const target_core::drop& d) const {
    return fmt::format("drop {}", d.which);
  }
  std::string operator()(const target_core::reply& r) const {
    return fmt::format("{} hears {}", r.to, in_words(r.message));
  }
  std::string operator()(const target_core::note&) const { return {}; }
};

/// A line for each, but for notes.
inline std::vector<std::string> in_words(const target_core::effects& all) {
  std::vector<std::string> lines;
  for (const auto& e : all)
    if (auto line = std::visit(effect_in_words{}, e); !line.empty())
      lines.push_back(std::move(line));
  return lines;
}

} // namespace troupe::ckpt::testing
