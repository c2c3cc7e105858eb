# shellcheck shell=sh
# Answers each line with a server's counters: sh server_watch.sh FOLDER. Read from files without starting a process (proc(5)).
#   uptime in hundredths, processor ticks, resident KiB, bytes read and written
read -r pid _ < "$1/pid" || exit
while read -r _; do
  read -r up _ < /proc/uptime
  read=0 written=0 resident=0
  while read -r name value _; do
    [ "$name" = VmRSS: ] && resident=$value && break
  done < "/proc/$pid/status" || exit
  while read -r name value; do
    case $name in read_bytes:) read=$value ;; write_bytes:) written=$value ;; esac
  done < "/proc/$pid/io"
  read -r stat < "/proc/$pid/stat"
  set -- ${stat##*) }
  echo "${up%.*}${up#*.} $((${12} + ${13})) $resident $read $written"
done
