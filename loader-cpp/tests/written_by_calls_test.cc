// What of the kernel's count of dirtied bytes is believed beside what was written by calls.
#include "medium-sim/written_by_calls.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace opjoule {

TEST_CASE("a file that is mapped shared and writable is found, shared memory is not") {
  CHECK(maps_file_writable("7f0000-7f1000 rw-s 00000000 fe:00 12 /data/db.mdb\n"));
  CHECK_FALSE(maps_file_writable("7f0000-7f1000 r--s 00000000 fe:00 12 /data/db.mdb\n"));
  CHECK_FALSE(maps_file_writable("7f0000-7f1000 rw-p 00000000 fe:00 12 /usr/lib/libc.so.6\n"));
  CHECK_FALSE(
      maps_file_writable("7f0000-7f1000 rw-s 00000000 00:01 9 /dev/shm/PostgreSQL.1\n"
                         "7f2000-7f3000 rw-s 00000000 00:01 9 /dev/zero (deleted)\n"));
}

TEST_CASE("no more is believed than calls touched, and a folio that calls fill is in the end") {
  WrittenByCalls calls;
  const std::vector<pid_t> self{::getpid()};
  CHECK(calls.grown(self) == WrittenByCalls::kAny);  // it is new
  CHECK(calls.believed(2 << 20, 8192, self) == 8192);
  CHECK(calls.believed(0, 0, self) == 0);
  CHECK(calls.believed(0, 1 << 20, self) == 1 << 20);
  CHECK(calls.believed(0, 2 << 20, self) == (1 << 20) - 8192);
  CHECK(calls.believed(1 << 20, 0, self) == 1 << 20);  // the pages of calls before
  for (int i = 0; i < 100; ++i) CHECK(calls.believed(2 << 20, 8192, self) <= 8192 * 2 + (1 << 20));
}

}  // namespace opjoule
