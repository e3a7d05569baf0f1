#pragma once

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

  friend bool operator<(const step_key& a, const step_key& b) {
    return std::tie(a.place, a.step, a.made_by) < std::tie(b.place, b.step, b.made_by);
  }
  friend bool operator==(const step_key& a, const step_key& b) {
    return std::tie(a.place, a.step, a.made_by) == std::tie(b.place, b.step, b.made_by);
  }
};

inline step_key key_of(messages::StepKey::Reader from) {
  return {from.getPlace().cStr(), from.getStep(), generation{from.getGeneration()}};
}

inline void write_key(messages::StepKey::Builder to, const step_key& key) {
  to.setPlace(key.place);
  to.setStep(key.step);
  to.setGeneration(key.made_by.value);
}

} // namespace troupe::actors
