# shellcheck shell=sh
# Stops what still runs in a folder and writes its files to stdout as a tar: sh stop_and_pack.sh FOLDER.
# Exit status 3: the folder is not there; 4: it does not stop.
folder=$1
[ -d "$folder" ] || exit 3
# Whoever waits for a reader of the operations waits no longer.
[ ! -p "$folder/operations" ] || : <>"$folder/operations"
# A number is used again: it is ours only with the marks socket of this very session in its environment.
is_ours() { tr '\000' '\n' <"/proc/$1/environ" 2>/dev/null | grep -qxF "OPJOULE_MARKS=${folder%/*}/probe/marks"; }
stop() {
  read -r pid boot < "$folder/pid" || return 0
  [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 0
  tries=0
  if is_ours "$pid"; then
    kill -TERM "$pid"
    while is_ours "$pid" && [ "$tries" -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
    ! is_ours "$pid" || return 1
  elif [ -e "/proc/$pid" ]; then
    return 0
  fi
  tries=0
  # Its keeper may be about to write its status: a folder that changes cannot be packed.
  while [ ! -s "$folder/status" ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
}
stop || exit 4
exec tar -C "$folder" --exclude=./marks -cf - .
