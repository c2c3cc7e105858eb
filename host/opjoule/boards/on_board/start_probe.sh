# shellcheck shell=sh
# Runs the probe for a whole measurement: sh start_probe.sh FOLDER COMMAND [ARGUMENT]... Its number and exit status stand in
# FOLDER. Standard input carries the host's requests; the probe ends with it.
folder=$1
shift
trap '' HUP INT
(umask 077 && mkdir -p "$folder") || exit
boot=$(cat /proc/sys/kernel/random/boot_id)
OPJOULE_MARKS=$folder/marks
export OPJOULE_MARKS
# shellcheck disable=SC2016 # the inner shell expands them; it becomes the probe, whose number is then on file from the start
sh -c 'echo "$$ $1" >"$2/pid"; shift 2; exec "$@"' sh "$boot" "$folder" "$@"
status=$?
echo "$status" >"$folder/status"
exit "$status"
