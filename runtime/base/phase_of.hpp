#pragma once

#include "runtime/base/invariant.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace troupe {

/// The phases of something, with their names, and which of them may follow which. Stands beside the
/// enumeration, in its order, and is looked at when the program is compiled.
///
///     static constexpr phase_table<phase> table{
///         "a door", {{phase::open, "open", {phase::shut}}, {phase::shut, "shut", {phase::open}}}};
template<class Phase>
class phase_table {
 public:
  using phase = Phase;
  struct row {
    Phase from;
    const char* name;
    std::initializer_list<Phase> next;
  };

  constexpr phase_table(const char* whose, std::initializer_list<row> rows) : whose_(whose) {
    for (const auto& r : rows) {
      if (index(r.from) != size_ || size_ == most)
        throw invariant_broken("a table of phases in another order than the enumeration");
      names_[size_++] = r.name;
    }
    for (const auto& r : rows)
      for (const auto to : r.next) {
        if (index(to) >= size_)
          throw invariant_broken("a table of phases that leads out of itself");
        next_[index(r.from)] |= 1U << index(to);
      }
  }

  constexpr bool leads(Phase from, Phase to) const {
    return index(from) < size_ && index(to) < size_ && (next_[index(from)] >> index(to) & 1U) != 0;
  }
  constexpr const char* name(Phase p) const {
    return index(p) < size_ ? names_[index(p)] : "unknown";
  }
  constexpr const char* whose() const { return whose_; }

 private:
  static constexpr std::size_t most = 16;
  static constexpr std::size_t index(Phase p) { return static_cast<std::size_t>(p); }

  const char* whose_;
  std::size_t size_ = 0;
  std::array<const char*, most> names_{};
  std::array<std::uint32_t, most> next_{};
};

/// The phase that something is in. It reads like the enumeration, and changes only along its table:
/// a step that is not there is a bug, and the actor that takes it ends rather than goes on with
/// what it believes of itself.
template<const auto& Table>
class phase_of {
 public:
  using phase = typename std::decay_t<decltype(Table)>::phase;

  /// Explicit, so that nothing is assigned past `become`.
  explicit constexpr phase_of(phase first) : now_(first) {}

  constexpr operator phase() const { return now_; }
  template<class... Phases>
  constexpr bool in(Phases... any) const {
    return ((now_ == any) || ...);
  }

  void become(phase to) {
    if (!Table.leads(now_, to))
      invariant(false, std::string(Table.whose()) + " that is " + Table.name(now_) +
                           " cannot become " + Table.name(to));
    now_ = to;
  }

 private:
  phase now_;
};

} // namespace troupe
