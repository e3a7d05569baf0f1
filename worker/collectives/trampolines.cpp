#include "worker/collectives/trampolines.hpp"

#include <cstdint>

// Each trampoline is 16 bytes; a pointer to a member function may not be odd, which means virtual.
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .balign 16
  .type troupe_trampolines_common, @function
troupe_trampolines_common:
  .cfi_startproc
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  pushq %rax
  .cfi_adjust_cfa_offset 8
  pushq %r10
  .cfi_adjust_cfa_offset 8
  subq $136, %rsp
  .cfi_adjust_cfa_offset 136
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  movq %rsi, %rdx
  movq %rdi, %rsi
  movl %r11d, %edi
  call troupe_trampoline_entered
  movq %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  addq $136, %rsp
  .cfi_adjust_cfa_offset -136
  popq %r10
  .cfi_adjust_cfa_offset -8
  popq %rax
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%r11
  .cfi_endproc
  .size troupe_trampolines_common, .-troupe_trampolines_common

  .balign 16
  .globl troupe_trampolines
  .hidden troupe_trampolines
troupe_trampolines:
  .cfi_startproc
  .set troupe_trampoline_index, 0
  .rept 128
  .balign 16
  endbr64
  movl $troupe_trampoline_index, %r11d
  jmp troupe_trampolines_common
  .set troupe_trampoline_index, troupe_trampoline_index + 1
  .endr
  .balign 16
  .cfi_endproc
  .popsection
)");
#elif defined(__aarch64__)
asm(R"(
  .pushsection .text
  .balign 16
  .type troupe_trampolines_common, %function
troupe_trampolines_common:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_adjust_cfa_offset 224
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov x2, x1
  mov x1, x0
  mov x0, x17
  bl troupe_trampoline_entered
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldr x8, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  .cfi_adjust_cfa_offset -224
  .cfi_restore x29
  .cfi_restore x30
  br x16
  .cfi_endproc
  .size troupe_trampolines_common, .-troupe_trampolines_common

  .balign 16
  .globl troupe_trampolines
  .hidden troupe_trampolines
troupe_trampolines:
  .cfi_startproc
  .set troupe_trampoline_index, 0
  .rept 128
  .balign 16
  hint #34
  mov x17, #troupe_trampoline_index
  b troupe_trampolines_common
  .set troupe_trampoline_index, troupe_trampoline_index + 1
  .endr
  .balign 16
  .cfi_endproc
  .popsection
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" __attribute__((visibility("hidden"))) const char troupe_trampolines[];
#endif

namespace troupe::worker {

void* trampoline(std::size_t index) {
#if defined(__x86_64__) || defined(__aarch64__)
  static_assert(trampolines_max == 128, "as many as the assembler repeats");
  return index < trampolines_max ? const_cast<char*>(troupe_trampolines + 16 * index) : nullptr;
#else
  (void)index;
  return nullptr;
#endif
}

} // namespace troupe::worker
