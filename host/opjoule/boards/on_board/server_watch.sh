# shellcheck shell=sh
# Answers each line with a server's counters: sh server_watch.sh FOLDER. Read from files without starting a process (proc(5)),
# but for one sed where the kernel lists no children (built without PROC_CHILDREN).
#   uptime in hundredths, processor ticks, resident KiB, bytes read and written
# Of the server and the processes that it has started: those that have ended are in its own counters (cutime, cstime, io).
# Memory that they share counts once, as the most that one of them has of it.
read -r pid _ < "$1/pid" || exit
while read -r _; do
  read -r up _ < /proc/uptime
  read=0 written=0 anon=0 shared=0 ticks=0 children=
  if [ -e "/proc/$$/task/$$/children" ]; then { read -r children < "/proc/$pid/task/$pid/children"; } 2>/dev/null
  else children=$(sed -n "s/ (.*) . $pid .*//p" /proc/[0-9]*/stat 2>/dev/null); fi
  for each in $pid $children; do
    rss=0 own=0
    { while read -r name value _; do
      case $name in VmRSS:) rss=$value ;; RssAnon:) own=$value && break ;; esac
    done < "/proc/$each/status"; } 2>/dev/null || { [ "$each" = "$pid" ] && exit; continue; }
    { while read -r name value; do
      case $name in read_bytes:) read=$((read + value)) ;; write_bytes:) written=$((written + value)) ;; esac
    done < "/proc/$each/io"; } 2>/dev/null
    { read -r stat < "/proc/$each/stat"; } 2>/dev/null || continue
    set -- ${stat##*) }
    ticks=$((ticks + ${12} + ${13} + ${14} + ${15})) anon=$((anon + own))
    [ $((rss - own)) -le "$shared" ] || shared=$((rss - own))
  done
  echo "${up%.*}${up#*.} $ticks $((anon + shared)) $read $written"
done
