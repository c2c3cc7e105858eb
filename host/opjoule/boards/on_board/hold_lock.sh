# shellcheck shell=sh
# Holds the lock of a working folder: sh hold_lock.sh FOLDER SILENCE_S WAIT_S. Released when the host falls silent (a cut
# link) or its end of the connection closes (a killed host).
exec 9>"$1/lock"
flock -w "$3" 9 || { echo taken; exit; }
echo held
while [ -n "$(timeout "$2" head -c 1)" ]; do :; done
