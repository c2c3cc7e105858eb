# shellcheck shell=sh
# What measurements leave on a board, found and removed by name:
#   sh sessions.sh find FOLDER...     prints the sessions' folders directly below each FOLDER, each ended by a NUL
#   sh sessions.sh remove FOLDER...   removes them, and prints each that is gone
# A session's folder is a real directory of this user called opjoule-, twelve hexadecimal digits, and perhaps a dash and
# a database's name. Nothing else is ever removed: no symbolic link, nobody else's, nothing on another file system.
LC_ALL=C
export LC_ALL
hex='[0-9a-f]'
hex6=$hex$hex$hex$hex$hex$hex
bears_name() {
  # shellcheck disable=SC2254 # patterns
  case $1 in opjoule-$hex6$hex6 | opjoule-$hex6$hex6-?*) return 0 ;; esac
  return 1
}
is_ours() { [ -d "$1" ] && [ ! -h "$1" ] && [ -O "$1" ]; }
refuse() { echo "$1 is left alone: $2" >&2; failed=1; }

remove() {
  parent=${1%/*}
  if ! bears_name "${1##*/}" && ! { bears_name "${parent##*/}" && is_ours "$parent"; }; then
    refuse "$1" "its name is no measurement's"
  elif [ ! -e "$1" ] && [ ! -h "$1" ]; then :
  elif ! is_ours "$1"; then refuse "$1" "it is a symbolic link, no directory, or another user's"
  elif remove_whole "$1"; then printf '%s\0' "$1"
  else refuse "$1" "it cannot be removed wholly"; fi
}

# A program that was killed may finish a call first, and so make a file while its folder is removed.
remove_whole() {
  for pause_s in 1 2 0; do
    if message=$(rm -rf --one-file-system -- "$1" 2>&1) && [ ! -e "$1" ]; then return 0; fi
    sleep "$pause_s"
  done
  printf '%s\n' "$message" >&2
  return 1
}

action=$1 failed=0
shift
for folder; do
  case $action in
  find)
    for found in "$folder"/opjoule-*; do
      if bears_name "${found##*/}" && is_ours "$found"; then printf '%s\0' "$found"; fi
    done
    ;;
  remove) remove "$folder" ;;
  esac
done
exit "$failed"
