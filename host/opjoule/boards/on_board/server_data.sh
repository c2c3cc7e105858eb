# shellcheck shell=sh
# Makes a server's data folder: sh server_data.sh DATA ACCOUNT ACCESS, with its password, if any, on stdin.
# Prints the folder that the server gets and, where root is to start it as ACCOUNT, what it is started through, a word a line.
# It knows the folder by a descriptor then, which what it starts inherits: folders above may be closed to ACCOUNT.
data=$1 account=$2 access=$3
[ "$(id -u)" = 0 ] || account=
mkdir -- "$data" || exit 9
password=$(cat)
folder=$data through=
if [ -n "$account" ]; then
  chmod 755 "$data" && mkdir -m 700 -- "$data/server" && chown "$account" "$data/server" || exit
  folder=/proc/self/fd/9
  to_account="exec 9<\"\$0\"; exec setpriv --reuid=$(id -u "$account") --regid=$(id -g "$account") --clear-groups -- \"\$@\""
  sh -c "$to_account" "$data/server" test -w "$folder" || { echo "the account $account cannot write to $data/server" >&2; exit 1; }
  through=$(printf '%s\n' sh -c "$to_account" "$data/server")
elif [ -n "$password" ]; then
  folder=$data/server
  mkdir -m 700 -- "$folder" || exit
fi
if [ -n "$password" ]; then
  umask 077
  mkdir -p -- "$access" && printf '%s\n' "$password" > "$data/secret" && printf '*:*:*:*:%s\n' "$password" > "$access/passfile" || exit
  [ -z "$account" ] || chown "$account" "$data/secret" || exit
fi
printf '%s\n%s\n' "$folder" "$through"
