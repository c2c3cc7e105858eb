// One line on stderr when an engine's code crashes the process, which would otherwise end without a
// message.
//
// Engines read their files through memory maps (LMDB, LevelDB; SQLite with sqlite.mmap_bytes): what
// an ordinary read would report as an error is a SIGBUS there, which no engine handles.
#pragma once

namespace opjoule {

// From now on SIGBUS ends the process with one line that names the file: exit code 4 where the file
// ends before the place (cut off), 3 where its device failed. An engine's failed assertion, or its
// stepping outside its memory (damaged pages), and memory that the system does not give (operator
// new) end with one line and exit code 3. Thread safety: called once, at the start.
void report_crashes();

}  // namespace opjoule
