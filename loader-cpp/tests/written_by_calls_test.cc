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
  CHECK_FALSE(calls.grown(self).is_all);  // it is new
  const auto believed = [&](uint64_t dirtied, uint64_t by_calls) {
    return calls.believed(dirtied, {by_calls, true}, self);
  };
  CHECK(believed(2 << 20, 8192) == 8192);
  CHECK(believed(0, 0) == 0);
  CHECK(believed(0, 1 << 20) == 1 << 20);
  CHECK(believed(0, 2 << 20) == (1 << 20) - 8192);
  CHECK(believed(1 << 20, 0) == 1 << 20);  // the pages of calls before
  for (int i = 0; i < 100; ++i) CHECK(believed(2 << 20, 8192) <= 8192 * 2 + (1 << 20));
}

TEST_CASE("pages of calls that were seen together with a new process are believed later") {
  WrittenByCalls calls;
  const std::vector<pid_t> self{::getpid()};
  CHECK(calls.believed(9 * 65536, {16 * 65536, false}, self) == 9 * 65536);
  CHECK(calls.believed(7 * 65536, {0, true}, self) == 7 * 65536);
  CHECK(calls.believed(7 * 65536, {0, true}, self) == 0);
}

}  // namespace opjoule
