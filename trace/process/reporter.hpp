#pragma once

namespace troupe::trace {

/// Writes metrics and timelines, and answers at the port. In a thread of its own: a disk or a
/// client that is slow delays no measurement.
///
///   <TROUPE_TRACE_DIR>/troupe-trace-<rank>.prom             replaced whole every ten seconds
///   <timeline directory>/<rank>-<world size>.timeline.json  when `timeline.request` there changes
///   <timeline directory>/<rank>-<world size>.hang.json      when a hang begins
///
/// It is asked by a file and not by a signal, as signals belong to the program: `touch` in the
/// directory asks all ranks of a node at once, and inotify tells them.
bool prepare_reporter();
void run_reporter();
void wake_reporter();
/// A hang has begun: a line, and a timeline.
void report_hang();

} // namespace troupe::trace
