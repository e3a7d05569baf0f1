#ifndef TROUPE_WORKER_H
#define TROUPE_WORKER_H

/* What a training process says about itself, for any language that can call C: how far it is, and
 * its channel to the node supervisor. troupe_ckpt.h has the part for checkpoints.
 *
 * The functions of progress never fail, and need no lock and no system call. Without a page of the
 * launcher's, in a process that a worker has forked, and in any other process below a worker they
 * write into memory of this process that is read by no other: a script runs the same everywhere. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- progress ---- */

/* Phases and collectives, as diag/progress/page.hpp numbers them. */
enum {
  TROUPE_OTHER,
  TROUPE_INPUT,
  TROUPE_FORWARD,
  TROUPE_BACKWARD,
  TROUPE_OPTIMIZER,
  TROUPE_CHECKPOINT,
  TROUPE_EVALUATION,
  TROUPE_USER,
};
enum {
  TROUPE_ALL_REDUCE = 1,
  TROUPE_BROADCAST,
  TROUPE_REDUCE,
  TROUPE_ALL_GATHER,
  TROUPE_GATHER,
  TROUPE_SCATTER,
  TROUPE_REDUCE_SCATTER,
  TROUPE_ALL_TO_ALL,
  TROUPE_BARRIER,
  TROUPE_SEND,
  TROUPE_RECV,
  TROUPE_OTHER_COLLECTIVE,
};
/* What reports to the page. */
enum {
  TROUPE_FEED_SCRIPT = 1,
  TROUPE_FEED_OPTIMIZER = 2,
  TROUPE_FEED_COLLECTIVES = 4,
  TROUPE_FEED_COLLECTIVE_ENDS = 8,
  TROUPE_FEED_INPUT = 16,
  TROUPE_FEED_PHASES = 32,
};

/* Takes the page that the launcher has left open for this process (TROUPE_PROGRESS_FD): 1. There is none, or another process
 * that lives has taken it: 0. What is said below goes to the page from then on. The calling thread is the script's: phases are
 * its own, until another thread makes the first step. */
int troupe_take_page(void);
void troupe_feeds(uint64_t bits);

/* A training step is made: the script's own number, or the next one. */
void troupe_step(uint64_t number);
void troupe_next_step(void);
/* There is progress that is counted nowhere else. */
void troupe_touch(void);

/* Phases may lie in each other. `name` is for TROUPE_USER, else 0. `leave` leaves the innermost one of that kind; without one it
 * does nothing. */
void troupe_phase_enter(uint32_t kind, const char* name);
void troupe_phase_leave(uint32_t kind);

/* What hooks see of a training script that says nothing itself. From it come the phases: forward is what lies between a batch and
 * the backward pass, or an evaluation where gradients are off. An end of an optimizer's step is a training step,
 * unless the script counts steps itself or `TROUPE_MINOR_OPTIMIZER_ENDS` says that another optimizer counts. */
enum {
  TROUPE_INPUT_BEGINS,
  TROUPE_INPUT_ENDS, /* with a batch */
  TROUPE_INPUT_IS_OVER,
  TROUPE_BACKWARD_BEGINS,
  TROUPE_BACKWARD_ENDS,
  TROUPE_OPTIMIZER_BEGINS,
  TROUPE_OPTIMIZER_ENDS,
  TROUPE_MINOR_OPTIMIZER_ENDS,
  TROUPE_GRADIENTS_SWITCHED,
};
void troupe_observed(uint32_t event);

/* The communicator of this name, which is the same at all its members: their global ranks, in order. -1: there are too many, and
 * this one is not counted. */
int32_t troupe_communicator(const char* name, const uint32_t* members, size_t member_count);
/* Any thread. `bytes` 0: unknown. A leave without an enter is not counted. */
void troupe_collective_enter(int32_t communicator, uint32_t kind, uint64_t bytes);
void troupe_collective_leave(int32_t communicator);

/* ---- PyTorch's collectives, seen without the script's help and without Python's lock ---- */

/* Makes PyTorch's process groups of this process report: which feeds there are from now on, 0 if there are none. Call it when
 * torch is loaded, and before a process group is made. `why` gets one line for each library that cannot be hooked. */
uint64_t troupe_hook_collectives(char* why, size_t why_bytes);
/* Names the process groups whose sequence number this thread sets or asks for until troupe_named: how a caller that has no C++ pointer
 * says which is meant. */
void troupe_name_next(const char* name, const uint32_t* members, size_t member_count);
void troupe_named(void);
/* PyTorch's record of its last collectives (its "flight recorder") as JSON: its size, of which `out` gets no more than
 * `out_bytes`; or -1, and why in `why`. Without Python's lock. */
int64_t troupe_flight_record(char* out, size_t out_bytes, char* why, size_t why_bytes);

/* ---- the channel to the node supervisor ---- */

/* Begins a thread that dials TROUPE_CHANNEL, says what this process is, and answers. 1; or 0 if there is no channel, or this
 * process is not the one that took the page. `python` and `torch` are versions, or 0. */
int troupe_begin_channel(const char* python, const char* torch);

/* To be said before: on this signal the process writes Python's frames of all its threads to a descriptor that the launcher
 * knows. */
void troupe_stacks_by(int32_t signal);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
