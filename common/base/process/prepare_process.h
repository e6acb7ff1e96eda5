// What a process inherits, and what the system does to it: signals, standard streams, limits, the
// umask; and exceptions that nobody caught. Programs behave the same however they were started.
// docs/tools.md, "How a program ends", has the table for people.
#pragma once

#include "absl/status/status.h"

namespace distro {

// For the whole process: RunProgram calls it before anything else.
//
// * Signals: none is blocked. Those that would end the process without a reason to (SIGPIPE: a
//   reader of its output ended; SIGXFSZ: a file reached the limit of sizes, the write fails with
//   EFBIG; SIGUSR1, timers and the like) are ignored, unless a handler is installed already.
//   Children can be waited for. A mapped file that becomes shorter ends the process with 2 and its
//   name (mapped_file.h).
// * Streams: closed ones are /dev/null, so that no file of a run gets their numbers.
// * Limits: as many open files as the process may have; stacks of 8 MiB.
// * umask: what the process makes it can read and write itself.
// * std::terminate: a thread that found no memory, or could start no other one, ends the process
//   with 1 and a line that says so. Any other exception is our bug, and aborts after its line.
void PrepareProcess();

// ResourceExhausted: the process may not start as many threads as a service needs. gRPC would wait
// for them without end, and without a word.
absl::Status CheckThreadsCanStart();

}  // namespace distro
