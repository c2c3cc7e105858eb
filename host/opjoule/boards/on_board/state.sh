# shellcheck shell=sh
# Prints the board's settings that a measurement may change, one record a line, fields separated by tabs.
# sh state.sh CPUFREQ_FOLDER MEDIUM_DEVICE MEDIUM_PATH; reads only; some lines need root.
cpufreq=$1 device=$2 path=$3
line() { separator=''; for field; do printf '%s%s' "$separator" "$field"; separator='	'; done; echo; }
# Reads a file's first line into $value without another process: on a slow board each one counts.
get() { value=; [ -r "$1" ] && { read -r value 2>/dev/null < "$1" || [ -n "$value" ]; }; }

# Before Linux 4.3 a processor has its own folder, or a link to the one that it shares.
[ -e "$cpufreq/cpufreq/policy0" ] || for policy in "$cpufreq"/cpu[0-9]*/cpufreq; do
  if [ -d "$policy" ] && [ ! -h "$policy" ]; then set -- "$@" "$policy"; fi
done
shift 3
for policy in "$cpufreq"/cpufreq/policy* "$@"; do
  [ -r "$policy/scaling_governor" ] || continue
  set --
  for name in scaling_governor scaling_min_freq scaling_max_freq scaling_available_governors \
    cpuinfo_min_freq cpuinfo_max_freq; do
    get "$policy/$name"
    set -- "$@" "$value"
  done
  line policy "$policy" "$@"
done
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
  get "$cpu/online" || value=always
  line cpu "$cpu" "$value"
done
for switch in /sys/class/rfkill/rfkill*; do
  get "$switch/type" || continue
  type=$value
  get "$switch/name"
  name=$value
  get "$switch/soft"
  line radio "$switch" "$type" "$value" "$name"
done
for interface in /sys/class/net/*; do
  kind=virtual # a tunnel, a bridge, a VLAN: it may run over any of the others
  if [ -e "$interface/wireless" ] || [ -e "$interface/phy80211" ]; then kind=wifi
  elif [ -e "$interface/device" ]; then kind=wired; fi
  line interface "${interface##*/}" "$kind"
done
for connector in /sys/class/drm/card*-HDMI*; do
  get "$connector/status" && line hdmi "$connector" "$value"
done
for led in /sys/class/leds/*; do
  # systemd-backlight keeps a keyboard's light across reboots (udev's 99-systemd.rules).
  case $led in *'/input'*|*'/*'|*kbd_backlight) continue ;; esac
  get "$led/brightness"
  line led "$led" "$(sed -n 's/.*\[\([^]]*\)\].*/\1/p' "$led/trigger")" "$value"
done
for cooler in /sys/class/thermal/cooling_device*; do
  get "$cooler/type"
  case $value in *fan*) ;; *) continue ;; esac
  get "$cooler/max_state"
  highest=$value
  get "$cooler/cur_state"
  line fan "$cooler" "$highest" "$value"
  for binding in /sys/class/thermal/thermal_zone*/cdev[0-9]*; do # the zones that switch it
    [ "$(readlink -f "$binding")" = "$(readlink -f "$cooler")" ] || continue
    zone=${binding%/*}
    get "$zone/available_policies"
    policies=$value
    get "$zone/mode"
    mode=$value
    get "$zone/policy"
    line fan_zone "$zone" "$value" "$policies" "$mode"
  done
done
while read -r name kind _ _ priority; do
  [ "$name" = Filename ] || line swap "$name" "$kind" "$priority"
done < /proc/swaps
systemctl list-units --state=active,activating --plain --no-legend --type=service,timer,socket,path 2>/dev/null |
  while read -r unit _ active _; do line unit "$unit" "$active"; done
while read -r name size _; do
  [ "$name" = MemTotal: ] && line memory_kb "$size"
done < /proc/meminfo

for chip in /dev/gpiochip*; do
  [ -c "$chip" ] && [ ! -h "$chip" ] && line gpio "$chip" "$(stat -c %u -- "$chip")"
done

# Block devices: what each one is made of, and what is in use.
for block in /sys/class/block/*; do
  name=${block##*/}
  get "$block/size"
  size=$value
  case $name in loop*|ram*|nbd*) [ "$size" = 0 ] && continue ;; esac
  get "$block/dev"
  number=$value whole=$name slaves=''
  if [ -e "$block/partition" ]; then
    real=$(readlink -f "$block")
    real=${real%/*}
    whole=${real##*/}
  fi
  for slave in "$block"/slaves/*; do [ -e "$slave" ] && slaves="$slaves${slave##*/} "; done
  backing_number=''
  get "$block/loop/backing_file" && backing_number=$(stat -c %d -- "$value" 2>/dev/null)
  get "$block/device/model"
  model=$value
  get "$block/serial" || get "$block/device/serial" || get "$block/device/cid"
  line block "$name" "$number" "$whole" "$slaves" "$backing_number" "$size" "$model" "$value"
done
# mountinfo escapes spaces and the like as \040 (proc(5)): passed on as it stands.
while read -r _ _ number _ mounted _; do line mount "$number" "$mounted"; done < /proc/self/mountinfo
# Numbers of a device node are %t and %T, hexadecimal; those of the device that a file is on only %d in any coreutils.
node_number() { stat -L -c '0x%t:0x%T' -- "$1" 2>/dev/null; }
root=$(stat -c %d / 2>/dev/null)
if [ "$((${root:-0} >> 8 & 0xfff))" = 0 ]; then # major 0, as btrfs has numbers of its own: its source is the device
  source=$(findmnt -n -o SOURCE / 2>/dev/null | sed 's/\[.*//')
  [ -b "$source" ] && root=$(node_number "$source")
fi
line root "$root"
if [ -n "$device" ]; then
  real=$(readlink -f "$device")
  kind=missing
  [ -e "$real" ] && kind=other
  [ -b "$real" ] && kind=block
  line medium "$real" "$kind" "$(node_number "$real")"
  # Out of the superblock, without another tool: magic, s_feature_compat (0x4 is has_journal), UUID.
  bytes() { dd if="$real" bs=1 skip="$1" count="$2" 2>/dev/null | od -An -tx1 | tr -d ' \n'; }
  [ "$kind" = block ] && line file_system "$(bytes 1080 2)" "$(bytes 1116 4)" "$(bytes 1128 16)"
fi
line path "$(readlink -f "$path" 2>/dev/null)" "$([ -d "$path" ] && stat -c %d -- "$path")"
