# shellcheck shell=sh
# Waits until a server listens: sh server_listens.sh PORT FOLDER TRIES, ten tries a second. Exit status 3: it has ended; 4: it does not.
# 0A is LISTEN in /proc/net/tcp; ports stand there in hexadecimal.
port=$(printf '%04X' "$1") tries=0
while ! grep -q ":$port 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
  [ -e "$2/status" ] && exit 3
  tries=$((tries + 1))
  [ "$tries" -lt "$3" ] || exit 4
  sleep 0.1
done
