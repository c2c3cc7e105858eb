# shellcheck shell=sh
# Prints what is true of this board, one "name<TAB>value" a line: sh facts.sh SESSION JOURNAL. POSIX sh.
# Changes nothing but for the rig's own folders, which it makes: the loader's, and that of this session's files.
session=$1 journal=$2
say() { printf '%s\t%s\n' "$1" "$2"; }
first() { [ -r "$1" ] && head -n 1 "$1" 2>/dev/null | tr -d '\000'; }

say kernel "$(uname -s) $(uname -r)"
say machine "$(uname -m)"
say hostname "$(uname -n)"
say user_id "$(id -u)"
say user "$(id -un)"
say boot_id "$(cat /proc/sys/kernel/random/boot_id)"
say model "$(first /proc/device-tree/model || echo unknown)"
say serial "$(first /proc/device-tree/serial-number || echo unknown)"
# shellcheck disable=SC1091 # the board's file
say system "$(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME-unknown}")"
say cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
say processors "$(getconf _NPROCESSORS_ONLN)"
say memory_kb "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say clock_source "$(first /sys/devices/system/clocksource/clocksource0/current_clocksource)"
say c_library "$(getconf GNU_LIBC_VERSION 2>/dev/null || echo unknown)"
helper=/usr/local/sbin/opjoule-root # what it may do as root where sudo allows nothing else: measure.py sudoers
if [ "$(id -u)" = 0 ]; then say rights root
elif [ -x "$helper" ] && version=$(sudo -n "$helper" version 2>/dev/null); then say rights helper; say helper "$version"
elif sudo -n true 2>/dev/null; then say rights sudo
else say rights none; fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/opjoule
# A run's files are written to memory where there is some: writing them to a medium would cost energy.
if [ -n "${OPJOULE_WORK-}" ]; then work=$OPJOULE_WORK # the user's folder: only a subfolder of it is the rig's
elif [ -d /dev/shm ] && [ -w /dev/shm ]; then work=/dev/shm
else work=/var/tmp; fi
work=$work/opjoule-$(id -u)
for folder in "$cache" "$work" ${session:+"$work/$session" "$work/$session/files"}; do
  (umask 077 && mkdir -p "$folder")
  [ -O "$folder" ] || {
    case $folder in "$work"*) other=OPJOULE_WORK ;; *) other=XDG_CACHE_HOME ;; esac
    echo "$folder belongs to another user, or cannot be made: set $other to a folder of your own" >&2; exit 1
  }
  case $folder in "$work"*) [ ! -h "$folder" ] || { echo "$folder is a symbolic link: remove it" >&2; exit 1; } ;; esac
done
say cache "$cache"
say work "$work"
gpio=none
for chip in /dev/gpiochip*; do
  [ -e "$chip" ] || continue
  if [ -w "$chip" ]; then gpio=usable; else gpio=denied; break; fi
done
say gpio "$gpio"
if [ -d "$journal" ]; then say journal left; else say journal none; fi
# SSH_CONNECTION: client address, client port, server address, server port (ssh(1)).
# shellcheck disable=SC2086 # four words
set -- ${SSH_CONNECTION-}
if [ $# = 4 ]; then
  say connection_interface "$(ip -o address show 2>/dev/null | awk -v a="$3" '{split($4, p, "/"); if (p[1] == a) print $2}' | head -n 1)"
fi
