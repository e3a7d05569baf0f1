#pragma once

#include "ckpt/catalog/save_id.hpp"
#include "messages/checkpoint.capnp.h"
#include "runtime/base/ids.hpp"

#include <cstdint>
#include <string>
#include <tuple>

namespace troupe::actors {

/// One attempt to save one step: see messages/checkpoint.capnp.
struct step_key {
  std::string place;
  std::uint64_t step = 0;
  generation made_by;
  std::uint64_t save = 0; ///< of that generation

  ckpt::save_id id() const { return {made_by, save}; }
  friend bool operator<(const step_key& a, const step_key& b) {
    return std::tie(a.place, a.step, a.made_by, a.save) <
           std::tie(b.place, b.step, b.made_by, b.save);
  }
  friend bool operator==(const step_key& a, const step_key& b) {
    return std::tie(a.place, a.step, a.made_by, a.save) ==
           std::tie(b.place, b.step, b.made_by, b.save);
  }
};

inline step_key key_of(messages::StepKey::Reader from) {
  return {from.getPlace().cStr(), from.getStep(), generation{from.getGeneration()}, from.getSave()};
}

inline void write_key(messages::StepKey::Builder to, const step_key& key) {
  to.setPlace(key.place);
  to.setStep(key.step);
  to.setGeneration(key.made_by.value);
  to.setSave(key.save);
}

} // namespace troupe::actors
