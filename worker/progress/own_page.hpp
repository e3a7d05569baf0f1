#pragma once

#include "diag/progress/page_writer.hpp"

#include <cstdint>

/// The page of this process.
///
/// A descriptor is inherited by whatever a worker starts: a data loader's processes, a shell, a
/// compiler. If they wrote into the page, it would tell the progress of none of them. So the first
/// process that takes the page has it as long as that process lives, and a fork of it has not: all
/// others write into memory that is read by no one.
///
/// The claim is a lock on the page's file. A process that closes each descriptor it did not open
/// lets it go, and keeps on writing: only a process that it starts with that descriptor could then
/// take the page.
namespace troupe::worker {

/// The page's memory file has this name, so that a number that has come to mean another file is
/// told from it.
inline constexpr const char* page_file_name = "troupe-progress";

/// CLOCK_MONOTONIC, without a system call.
std::uint64_t now_ns();

/// Takes the page of TROUPE_PROGRESS_FD. False if there is none for this process.
bool take_page();
bool has_page();

/// Where this process writes; never absent.
diag::page_writer& page();

/// Phases are this thread's. Steps make a thread the script's if none was made before.
bool is_script_thread();
bool makes_steps();
/// A program that makes no steps is known by the thread that enters its collectives.
void makes_collective();

/// Called once, in the thread that makes the first step.
void on_first_step(void (*then)(std::uint64_t at_ns));
void step_made(std::uint64_t at_ns);

} // namespace troupe::worker
