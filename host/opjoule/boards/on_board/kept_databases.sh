# shellcheck shell=sh
# Loaded databases that are kept on a medium, so that measurements begin with copies of them:
#   sh kept_databases.sh size KEPT            prints the bytes it takes up; nothing where there is none
#   sh kept_databases.sh keep DATABASE KEPT   puts a database there that nobody has open: whole, or not at all
#   sh kept_databases.sh copy KEPT DATABASE   copies it, on the medium when this ends; its blocks are never shared
#   sh kept_databases.sh find FOLDER...       prints those directly below each FOLDER/opjoule-kept, each ended by a NUL
#   sh kept_databases.sh remove KEPT...       removes them, and prints each that is gone
# KEPT is a real directory of this user, opjoule-kept/NAME-, sixteen hexadecimal digits: in it database/, and the sizes of
# its files as they were. It gets its name when everything in it is on the medium.
LC_ALL=C
export LC_ALL
hex='[0-9a-f]'
hex8=$hex$hex$hex$hex$hex$hex$hex$hex
is_ours() { [ -d "$1" ] && [ ! -h "$1" ] && [ -O "$1" ]; }
is_kept() {
  parent=${1%/*}
  [ "${parent##*/}" = opjoule-kept ] && is_ours "$parent" && is_ours "$1" || return
  # shellcheck disable=SC2254 # patterns
  case ${1##*/} in [a-z]*-$hex8$hex8) [ -f "$1/sizes" ] && is_ours "$1/database" ;; *) return 1 ;; esac
}
fail() {
  echo "$1" >&2
  exit 1
}
sizes() { (cd "$1" && find . -type f -exec stat -c '%s %n' {} + | sort -k 2); }
taken_kib() { du -sk -- "$1" | cut -f 1; }
flush() { sync -f "$1" 2>/dev/null || sync; }

keep() { # DATABASE KEPT: what is cut off bears the name of DATABASE's session, and goes with it
  new=$1-kept
  {
    mkdir -p -- "${2%/*}" && mkdir -- "$new" && mv -T -- "$1" "$new/database" &&
      sizes "$new/database" >"$new/sizes" && flush "$new"
  } || fail "$2 cannot be kept"
  mv -T -- "$new" "$2" 2>/dev/null || { is_kept "$2" && rm -rf --one-file-system -- "$new"; } ||
    fail "$2 cannot be kept: the name is taken, or on another file system"
  flush "$2"
}

copy() { # KEPT DATABASE
  is_kept "$1" || fail "$1 is gone"
  whole=$(sizes "$1/database")
  [ "$whole" = "$(cat "$1/sizes")" ] ||
    fail "$1 was changed since it was loaded: measure.py restore --kept removes it, and the next measurement loads anew"
  set -- "$1" "$2" "$(taken_kib "$1/database")" "$(stat -f -c '%a %S' -- "$1")"
  free_kib=$((${4% *} * (${4#* } / 512) / 2))
  [ "$3" -le "$free_kib" ] ||
    fail "a copy of $1 takes $(($3 / 1024)) MiB, and $((free_kib / 1024)) MiB are free: free some space, or use --reset load"
  unshared=--reflink=never # of the GNU tools alone, which share blocks by themselves from version 9 on
  # shellcheck disable=SC2225 # asked whether it knows the option
  cp "$unshared" --help >/dev/null 2>&1 || unshared=
  { cp -R $unshared -- "$1/database" "$2" && flush "$2" && [ "$(sizes "$2")" = "$whole" ]; } ||
    fail "$1 could not be copied wholly"
}

remove() { # KEPT...
  for kept; do
    if is_kept "$kept" && rm -rf --one-file-system -- "$kept" && [ ! -e "$kept" ]; then printf '%s\0' "$kept"; else
      echo "$kept is left alone: it is no kept database of this user's, or cannot be removed wholly" >&2
      failed=1
    fi
    rmdir -- "${kept%/*}" 2>/dev/null
  done
  exit "${failed:-0}"
}

action=$1
shift
case $action in
size) ! is_kept "$1" || echo "$(($(taken_kib "$1/database") * 1024))" ;;
find)
  for folder; do
    for kept in "$folder"/opjoule-kept/*; do ! is_kept "$kept" || printf '%s\0' "$kept"; done
  done
  ;;
keep | copy | remove) "$action" "$@" ;;
esac
