#!/bin/sh
# What the twin's parameters are fitted to: cores one after the other, then writes, rest and reads. POSIX sh.
#   sh exercise.sh FOLDER_ON_THE_MEDIUM [SECONDS]
set -eu
place=$1
seconds=${2:-5}
cores=$(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)
now_cs() { read -r up _ </proc/uptime; echo "${up%.*}${up#*.}"; }

n=1
while [ "$n" -le "$cores" ]; do
  workers=""
  i=0
  while [ "$i" -lt "$n" ]; do
    (while :; do :; done) &
    workers="$workers $!"
    i=$((i + 1))
  done
  sleep "$seconds"
  # shellcheck disable=SC2086 # one word a process
  kill $workers
  wait || :
  sleep 1
  n=$((n + 1))
done

# How much the medium takes in the time: from 16 MiB of it.
start=$(now_cs)
dd if=/dev/zero of="$place/exercise" bs=1048576 count=16 conv=fsync 2>/dev/null
took=$(($(now_cs) - start))
[ "$took" -gt 0 ] || took=1
mib=$((16 * seconds * 100 / took))
[ "$mib" -ge 16 ] || mib=16
[ "$mib" -le 1024 ] || mib=1024
for pause in 3 6 12; do
  dd if=/dev/zero of="$place/exercise" bs=1048576 count="$mib" conv=fsync 2>/dev/null
  sleep "$pause"
done
# Around the page cache where the file system allows it; without, reads come from memory and tell nothing.
dd if="$place/exercise" of=/dev/null bs=1048576 iflag=direct 2>/dev/null || :
sleep 3
rm -f "$place/exercise"
