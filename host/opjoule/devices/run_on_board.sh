# shellcheck shell=sh
# Runs one loader on the board: sh run_on_board.sh DIRECTORY SILENCE_S COMMAND [ARGUMENT]...
# Standard input is the lifeline: the host writes a byte every few seconds. When it ends (Ctrl-C, a killed host) or stays
# silent for SILENCE_S (a cut link), the loader is asked to stop and closes its files in order.
directory=$1 silence_s=$2
shift 2
trap '' HUP PIPE INT
mkdir -p "$directory" || exit
exec 3<&0
boot=$(cat /proc/sys/kernel/random/boot_id)
# shellcheck disable=SC2016 # the inner shell expands them; it becomes the loader, whose number is then on file from the start
sh -c 'echo "$$ $1" >"$2/pid"; shift 2; exec "$@"' sh "$boot" "$directory" "$@" </dev/null 3<&- &
loader=$!
(
  exec >/dev/null 2>&1
  while [ -n "$(timeout "$silence_s" head -c 1 <&3)" ]; do :; done
  kill -TERM "$loader"
) &
lifeline=$!
exec 3<&-
wait "$loader"
status=$?
echo "$status" >"$directory/status"
kill "$lifeline" 2>/dev/null
exit "$status"
