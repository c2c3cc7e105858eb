# shellcheck shell=sh
# A stated background load: sh disturb.sh FOLDER CPU_PERCENT READ_KIB_S WRITE_KIB_S FILE_MIB. Ends when it is asked to.
# The processor is kept busy for its share of each second, in one burst.
folder=$1 cpu=$2 read_kib=$3 write_kib=$4 file_mib=$5
file=

busy() {
  while :; do
    read -r up _ < /proc/uptime
    now=${up%.*}${up#*.} # hundredths of a second
    [ "$((now % 100))" -lt "$cpu" ] || sleep 0.05
  done
}
# A write that outlives its loop for a moment must not make the file again: nocreat.
input_output() {
  while :; do
    [ "$read_kib" = 0 ] || dd if="$file" of=/dev/null bs="${read_kib}k" count=1 iflag=direct 2>/dev/null
    [ "$write_kib" = 0 ] || dd if=/dev/zero of="$file" bs="${write_kib}k" count=1 conv=nocreat,notrunc,fsync 2>/dev/null
    sleep 1
  done
}
workers=
end() {
  # shellcheck disable=SC2086 # several process numbers
  # A loop begun just now is in $! alone; it still has the traps of this shell, and loses every other signal.
  kill -KILL $workers $! 2>/dev/null
  [ -z "$file" ] || rm -f "$file"
}
trap end EXIT
trap exit TERM INT HUP
if [ "$file_mib" != 0 ]; then
  file=$(mktemp "$folder/opjoule-disturb.XXXXXX") && dd if=/dev/urandom of="$file" bs=1M count="$file_mib" 2>/dev/null || exit
fi
echo '{"ready":true}'
if [ "$cpu" != 0 ]; then busy & workers=$!; fi
if [ "$read_kib$write_kib" != 00 ]; then input_output & workers="$workers $!"; fi
wait
