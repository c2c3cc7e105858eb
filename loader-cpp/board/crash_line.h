// One line on stderr where an engine's code ends the process, instead of no word at all.
//
// Engines read their files through memory maps (LMDB, LevelDB; SQLite with sqlite.mmap_bytes): what
// an ordinary read would report as an error is there a SIGBUS, for which no engine has an answer.
#pragma once

namespace opjoule {

// From now on SIGBUS ends the process with one line that names the file: exit code 4 where the file
// ends before the place (cut off), 3 where its device failed. An engine's failed assertion, or its
// stepping outside its memory (damaged pages), and memory that the system does not give (operator
// new) end with one line and exit code 3. Thread safety: called once, at the start.
void report_crashes();

}  // namespace opjoule
