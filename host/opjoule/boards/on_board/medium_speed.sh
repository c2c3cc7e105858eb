# shellcheck shell=sh
# Free blocks and their size of the medium at FOLDER, then its speed over a file of MIB: sh medium_speed.sh FOLDER MIB.
LC_ALL=C
export LC_ALL
stat -f -c '%a %S' "$1"
[ "$2" = 0 ] && exit
file=$(mktemp "$1/opjoule-speed.XXXXXX") || exit
trap 'rm -f "$file"' EXIT
dd if=/dev/zero of="$file" bs=1M count="$2" oflag=direct conv=fsync || exit
dd if="$file" of=/dev/null bs=1M iflag=direct
