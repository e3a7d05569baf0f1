#pragma once

#include <cstddef>

/// Functions that look on while another function is called, without knowing its signature.
///
///     caller → trampoline i → troupe_trampoline_entered(i, first, second)
///                           → the function that it answers, with all registers and the stack
///                             as the caller left them
///
/// A trampoline has no frame when the function runs: it returns, and throws, to its caller.
namespace troupe::worker {

inline constexpr std::size_t trampolines_max = 128;

/// The address to be called instead; nullptr on a processor for which there are none.
void* trampoline(std::size_t index);

} // namespace troupe::worker

/// What a trampoline calls: the first two arguments in registers, whatever they are. Answers the
/// function to go on with.
extern "C" __attribute__((visibility("hidden"))) void*
troupe_trampoline_entered(std::size_t index, void* first, void* second);
