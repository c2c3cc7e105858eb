# shellcheck shell=sh
# Waits until a server listens and, with READY, until that command succeeds, ten tries a second:
#   sh server_listens.sh PORT FOLDER TRIES [READY...]
# Exit status 3: it has ended; 4: it does not. 0A is LISTEN in /proc/net/tcp; ports stand there in hexadecimal.
port=$(printf '%04X' "$1") folder=$2 most=$3 tries=0
shift 3
while ! { grep -q ":$port 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null && { [ $# = 0 ] || "$@" >/dev/null 2>&1; }; }; do
  [ -e "$folder/status" ] && exit 3
  tries=$((tries + 1))
  [ "$tries" -lt "$most" ] || exit 4
  sleep 0.1
done
