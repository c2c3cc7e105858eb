# shellcheck shell=sh disable=SC2154
# What is allowed, and the orders that are taken. Above this stand the lists $media, $units, $cpufreq, $user and $version, and
# what steps.sh and state.sh do. An order comes from a user who is not trusted with root: nothing of it is ever run as text.
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL
unset IFS CDPATH ENV
# shellcheck disable=SC2034 # steps.sh, which stands above this, keeps its journal there
journal=/var/lib/opjoule/journal
memory=/run/opjoule-memory
mark=$(printf '\037')

refused() { echo "opjoule-root does not do this: $*; after a change of rig.toml install it anew" >&2; exit 3; }
matches() { printf '%s\n' "$1" | grep -Eqx -- "$2"; }
is_in() { printf '%s\n' "$2" | grep -Fqx -- "$1"; }
number() { matches "$1" '[0-9]{1,12}'; }
settable() {
  case $1 in "$cpufreq"/*) matches "${1#"$cpufreq"}" '/(cpufreq/policy[0-9]+|cpu[0-9]+/cpufreq)/scaling_(governor|min_freq|max_freq)' && return ;; esac
  matches "$1" "/sys/devices/system/cpu/cpu[0-9]+/online|/sys/class/rfkill/rfkill[0-9]+/soft|/sys/class/drm/card[^/]+-HDMI[^/]*/status|/sys/class/leds/[^/]+/(trigger|brightness)|/sys/class/thermal/(cooling_device[0-9]+/cur_state|thermal_zone[0-9]+/(policy|mode))"
}
# Of $media, a line each: DEVICE|POINT|expendable or kept.
listed() { # NODE (empty for any) POINT (empty for any) KIND (empty for any)
  printf '%s\n' "$media" | while IFS='|' read -r device point kind; do
    [ -n "$device" ] || [ -z "$1" ] || continue
    [ -z "$1" ] || [ "$(readlink -f -- "$device")" = "$1" ] || continue
    [ -z "$2" ] || [ "$point" = "$2" ] || continue
    [ -z "$3" ] || [ "$kind" = "$3" ] || continue
    echo yes
    break
  done | grep -q yes
}
# A folder above the mount point that somebody else may change could turn it into any other place.
roots_own() {
  above=$1
  while above=${above%/*} && [ -n "$above" ]; do
    [ ! -e "$above" ] || matches "$(stat -c %u:%A -- "$above")" '0:d....-..-.' || return 1
  done
}
place() { listed '' "$1" "$2" && roots_own "$1"; } # POINT KIND

may() { # FUNCTION ARGUMENT...: whether it is one of the changes that a measurement makes
  for word; do
    case $word in *[!A-Za-z0-9_./:@,+=%\ -]* | *..*) return 1 ;; esac
  done
  case "$1 $#" in
  'put 3') settable "$2" ;;
  'systemctl '*)
    matches "$2" 'start|stop' || return 1
    shift 2
    for unit; do is_in "$unit" "$units" || return 1; done
    ;;
  'swapoff 2') is_swap "$2" ;;
  'swap_on 3') is_swap "$2" && { [ -z "$3" ] || number "$3"; } ;;
  'radio_on 4') settable "$2/soft" ;;
  'take_memory 3') [ "$2" = "$memory" ] && number "$3" ;;
  'unmount 3') [ "$2 $3" = "$memory opjoule-memory" ] || place "$2" '' ;;
  'chown 3')
    if matches "$3" '/dev/gpiochip[0-9]+'; then [ "$2" = "$user" ] || [ "$2" = "$(stat -c %u -- "$3")" ]
    else [ "$2" = "$user" ] && place "$3" expendable; fi
    ;;
  'drop_page_cache 1') ;;
  'mkdir 4') [ "$2 $3" = '-p --' ] && place "$4" '' ;;
  'remove_folder 2') place "$2" '' ;;
  'mount_medium 4') listed "$2" "$4" '' && roots_own "$4" ;;
  'make_file_system 4' | 'check_file_system 3' | 'journal_on 3' | 'journal_off 3') listed "$2" '' expendable ;;
  'journal_back 3') matches "$2" 'on|off' && matches "$3" '[0-9a-f-]{36}' ;;
  'trim 2' | 'fill 3') place "$2" expendable && number "${3:-0}" ;;
  *) return 1 ;;
  esac
}
switch_journal() { # of an expendable medium alone, whatever a UUID leads to
  listed "$2" '' expendable || { echo "$2 is no expendable medium" >&2; return 1; }
  e2fsck -p "$2" >/dev/null 2>&1
  tune2fs -O "$1" "$2" >/dev/null
}

order() { # NUMBER SCOPE needed|free COUNT UNDO... DO... END
  n=$1 scope=$2 must=$3 count=$4 undo=''
  matches "$n:$scope:$must:$count" '[0-9]{1,4}:(volatile|lasting):(needed|free):[0-9]' || refused "order $n"
  shift 4
  if [ "$count" != 0 ]; then
    left=$# undone=''
    while [ $((left - $#)) -lt "$count" ]; do
      undone="$undone '$1'"
      shift
    done
    undo=${undone# }
    eval "may $undo" || refused "$undo" # words of may's letters alone, each in quotes: checked before
  fi
  may "$@" || refused "$*"
  if [ "$must" = needed ]; then needed step "$n" "$scope" "$undo" "$@"; else step "$n" "$scope" "$undo" "$@"; fi
}

case "${1-} $#" in
'version 1') echo "$version" ;;
'state 4')
  [ -z "$3" ] || printf '%s\n' "$media" | grep -Fq -- "$3|" || refused "state of $3"
  listed '' "$4" '' || refused "state of $4"
  state_of "$cpufreq" "$3" "$4"
  ;;
'restore 1')
  one_at_a_time
  restore
  ;;
'change 1')
  orders=$(cat) # all of them, or nothing: a link may be cut on the way
  case $orders in *"${mark}end") ;; *) refused 'orders without an end' ;; esac
  one_at_a_time
  while IFS= read -r line; do
    case $line in
    "$mark"end) break ;;
    *[!A-Za-z0-9_./:@,+=%\ $mark-]*) refused 'a letter in an order' ;;
    esac
    set -f
    IFS=$mark
    # shellcheck disable=SC2086 # its words
    set -- $line
    unset IFS
    set +f
    [ $# -ge 5 ] || refused 'a short order'
    order "$@" </dev/null
  done <<ORDERS
$orders
ORDERS
  ;;
*) refused "${*:-nothing}" ;;
esac
exit 0
