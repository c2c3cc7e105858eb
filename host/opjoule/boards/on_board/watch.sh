# shellcheck shell=sh
# Answers each line with the board's sensors: sh watch.sh TEMPERATURE THROTTLED CPUFREQ HWMON. No process is started
# for an answer: polling must not warm the board. Patterns may stand for THROTTLED: kernels differ in the node's name.
#   flags    -> THROTTLED ALARM
#   anything -> TEMPERATURE THROTTLED ALARM FREQUENCIES BUSY TOTAL FAN      - for what cannot be read
temperature=$1 throttled='' alarm='' fan='' cpufreq=$3
get() { value=; [ -r "$1" ] && { read -r value 2>/dev/null < "$1" || [ -n "$value" ]; }; }
IFS=''
# shellcheck disable=SC2086 # a pattern
for file in $2; do [ -r "$file" ] && throttled=$file; done
for chip in "$4"/hwmon*; do # the kernel's own view of the same bits: raspberrypi-hwmon
  get "$chip/name" && [ "$value" = rpi_volt ] && alarm=$chip/in0_lcrit_alarm
done
for device in /sys/class/thermal/cooling_device*; do
  get "$device/type" || continue
  case $value in *fan*) fan=$device/cur_state ;; esac
done
unset IFS
flags() {
  get "$throttled"; answer=${value:--}
  get "$alarm"; answer="$answer ${value:--}"
}
while read -r question; do
  flags
  if [ "$question" = flags ]; then echo "$answer"; continue; fi
  get "$temperature"; answer="${value:--} $answer"
  frequencies=
  for policy in "$cpufreq"/cpufreq/policy*; do get "$policy/scaling_cur_freq" && frequencies="$frequencies,$value"; done
  if [ -z "$frequencies" ]; then # before Linux 4.3; a link is another processor's
    for policy in "$cpufreq"/cpu[0-9]*/cpufreq; do
      [ ! -h "$policy" ] && get "$policy/scaling_cur_freq" && frequencies="$frequencies,$value"
    done
  fi
  get "$fan"; turning=${value:--}
  get /proc/stat
  # shellcheck disable=SC2086 # numbers
  set -- $value
  shift
  idle=$(($4 + $5)) total=0
  for part in "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8"; do total=$((total + part)); done
  echo "$answer ${frequencies:--} $((total - idle)) $total $turning"
done
