# shellcheck shell=sh
# What prepare and restore do on the board. POSIX sh, run as root; sent as one block, so that a link cut on the way runs nothing.
# Every change is preceded by its undo in the folder $journal, one file a change, on the board's own disk.
boot=$(cat /proc/sys/kernel/random/boot_id)

put() { printf '%s\n' "$2" > "$1"; }
is_device() { # NODE NUMBER: whether the node still is the block device that the plan was made for, whatever its name
  [ -b "$1" ] && [ "$(stat -c %t:%T -- "$1")" = "$2" ] || { echo "$1 is no longer block device $2 (hexadecimal)" >&2; return 1; }
}
unmount() { # POINT WHAT: only what a measurement has mounted there; WHAT is a source or MAJOR:MINOR
  mountpoint -q "$1" || return 0
  case " $(findmnt -n -o SOURCE,MAJ:MIN -M "$1" | tail -n 1) " in
  *" $2 "*) umount "$1" ;;
  *) echo "something else is mounted on $1" >&2; return 1 ;;
  esac
}
remove_folder() { rmdir "$1" 2>/dev/null || :; } # what the user has put there since stays
is_swap() { awk -v n="$1" '$1 == n { found = 1 } END { exit !found }' /proc/swaps; }
# systemd may have taken a zram device down with its swap (zram-generator, rpi-swap): it makes it anew.
swap_on() {
  is_swap "$1" || swapon ${2:+-p "$2"} "$1" 2>/dev/null || systemctl start "$(systemd-escape -p --suffix=swap "$1")" || swapon "$1"
}
# A boot numbers the switches as their drivers come; where the name is new, too (phy1 for phy0), the only one of its type.
radio_on() { # SWITCH TYPE NAME
  found='' others=0
  for switch in "${1%/*}"/rfkill*; do
    [ "$(cat "$switch/type" 2>/dev/null)" = "$2" ] || continue
    others=$((others + 1)) other=$switch
    [ "$(cat "$switch/name" 2>/dev/null)" != "$3" ] || found=$switch
  done
  [ -n "$found" ] || [ "$others" != 1 ] || found=$other
  [ -n "$found" ] || { echo "no radio $3 of type $2 is there; rfkill unblock $2 switches all of them on"; return 1; }
  put "$found/soft" 0
}
switch_journal() { e2fsck -p "$2" >/dev/null 2>&1; tune2fs -O "$1" "$2" >/dev/null; }
journal_on() { is_device "$1" "$2" && switch_journal has_journal "$1"; }
journal_off() { is_device "$1" "$2" && switch_journal ^has_journal "$1"; }
# A file system is found again by its own mark: after a reboot another disk may have the device's name and number.
journal_back() { # on|off UUID
  device=$(blkid -c /dev/null -o device -t "UUID=$2")
  [ -b "$device" ] || { echo "not one file system $2 is plugged in, but: ${device:-none}" >&2; return 1; }
  case $1 in on) switch_journal has_journal "$device" ;; off) switch_journal ^has_journal "$device" ;; esac
}
make_file_system() { # NODE NUMBER UUID
  is_device "$1" "$2" && wipefs -q -a "$1" && is_device "$1" "$2" &&
    mkfs.ext4 -q -F -U "$3" -E lazy_itable_init=0,lazy_journal_init=0 "$1"
}
check_file_system() { is_device "$1" "$2" || return; e2fsck -p -f "$1" >/dev/null; [ $? -le 1 ]; }
mount_medium() { is_device "$1" "$2" && mount -t ext4 -o noatime,nosuid,nodev "$1" "$3"; } # NODE NUMBER POINT
trim() { fstrim "$1" 2>/dev/null || { echo 'the medium takes no TRIM' >&2; return 1; }; }
drop_page_cache() { sync; echo 3 > /proc/sys/vm/drop_caches; }
take_memory() { # FOLDER KIB: fills that much of the board's memory, which cannot be swapped out
  mkdir -p "$1" && mount -t ramfs opjoule-memory "$1" && head -c "$(($2 * 1024))" /dev/zero > "$1/taken"
}
fill() { # FOLDER MIB: writes and removes that much, so that the medium has no easy free blocks left
  filling=$(mktemp "$1/opjoule-fill.XXXXXX") || return
  dd if=/dev/urandom of="$filling" bs=1M count="$2" conv=fsync 2>/dev/null; status=$?
  rm -f "$filling"; return $status
}

# After a cut link an earlier script may still be at work: its changes must be complete before they are undone.
# shellcheck disable=SC2154 # $journal is set by what is sent before
one_at_a_time() {
  mkdir -p "${journal%/*}" && exec 9>"$journal.lock" && flock 9
  last=0 # changes that could not be undone yet keep their numbers
  for file in "$journal"/*.undo; do
    file=${file##*/} file=${file%.undo}
    case $file in [0-9][0-9][0-9][0-9]) last=$((1$file - 10000)) ;; esac
  done
}

in_scope() { [ "$1" = lasting ] || [ "$2" = "$boot" ]; } # a reboot has undone what is not lasting

remember() { # remember NUMBER volatile|lasting UNDO
  (umask 077 && mkdir -p "$journal")
  printf 'in_scope %s %s || return 0\n%s\n' "$2" "$boot" "$3" > "$journal/$1.new"
  mv "$journal/$1.new" "$journal/$1.undo"
  sync "$journal/$1.undo" "$journal" 2>/dev/null || sync
}

step() { # step NUMBER SCOPE UNDO COMMAND [ARGUMENT]...
  number=$1 scope=$2 undo=$3
  shift 3
  [ -z "$undo" ] || remember "$(printf %04d $((last + number)))" "$scope" "$undo"
  why=$("$@" 2>&1) && printf 'done\t%04d\n' "$number" && return
  printf 'failed\t%04d\t%s\n' "$number" "$(printf '%s' "$why" | tail -n 1)"
  return 1
}
needed() { "$@" || exit 0; } # what follows would be done to something else

restore() {
  [ ! -d "$journal" ] || undo_all
  rm -f "$journal.lock"
  rmdir "$journal" "${journal%/*}" 2>/dev/null
}

undo_all() {
  # shellcheck disable=SC2045 # the names are the rig's own: a number and .undo
  for file in $(ls -r "$journal"); do
    case $file in
    *.undo)
      # shellcheck disable=SC1090 # an undo is one command, written by remember
      if why=$( (. "$journal/$file") 2>&1); then
        printf 'done\t%s\t%s\n' "${file%.undo}" "$(tail -n 1 "$journal/$file")"
        rm -f "$journal/$file"
      else printf 'failed\t%s\t%s\n' "${file%.undo}" "$(tail -n 1 "$journal/$file"): $(printf '%s' "$why" | tail -n 1)"; fi
      ;;
    *.new) rm -f "$journal/$file" ;;
    esac
  done
}
