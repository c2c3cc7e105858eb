# shellcheck shell=sh
# Stops a loader that still runs and writes its files to stdout as a tar: sh stop_and_pack.sh FOLDER.
# Exit status 3: the folder is not there; 4: the loader does not stop.
folder=$1
[ -d "$folder" ] || exit 3
# Whoever waits for a reader of the operations waits no longer.
[ ! -p "$folder/operations" ] || : <>"$folder/operations"
stop() {
  read -r pid boot < "$folder/pid" || return 0
  [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 0
  tries=0
  case $(readlink "/proc/$pid/exe") in
  */loader-*)
    kill -TERM "$pid"
    while [ -e "/proc/$pid" ] && [ "$tries" -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
    [ ! -e "/proc/$pid" ] || return 1
    tries=0
    ;;
  ?*) return 0 ;;
  esac
  # run_on_board.sh may be about to write its status: a folder that changes cannot be packed.
  while [ ! -s "$folder/status" ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
}
stop || exit 4
exec tar -C "$folder" -cf - .
