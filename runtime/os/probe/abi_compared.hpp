#pragma once

#include <type_traits>

/// Whether a function that is declared here is called as its library's own header says. Compiled,
/// never run.
namespace troupe::os::cuda {

/// Passed in the same registers: pointers, and whole numbers of a size.
template<class Real, class Ours>
inline constexpr bool
    passed_alike = sizeof(Real) == sizeof(Ours) &&
                   std::is_pointer_v<Real> == std::is_pointer_v<Ours>&& std::is_class_v<Real> ==
                       std::is_class_v<Ours>;

template<class Real, class Ours>
struct compared : std::false_type {};
template<class RealAnswer, class... Real, class OurAnswer, class... Ours>
struct compared<RealAnswer(Real...), OurAnswer(Ours...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Real) == sizeof...(Ours))
      return passed_alike<RealAnswer, OurAnswer> && (passed_alike<Real, Ours> && ...);
    else
      return false;
  }();
};

#define TROUPE_SAME(function)                                                                      \
  static_assert(troupe::os::cuda::compared<decltype(::function),                                   \
                                           troupe::os::cuda::signatures::function>::value,         \
                #function)

} // namespace troupe::os::cuda
