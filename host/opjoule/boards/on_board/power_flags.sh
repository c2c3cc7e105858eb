# shellcheck shell=sh
# Prints the files that tell of under-voltage: sh power_flags.sh THROTTLED_PATTERN HWMON_FOLDER.
IFS=''
# shellcheck disable=SC2086 # a pattern
for file in $1; do [ -r "$file" ] && echo "$file"; done
for chip in "$2"/hwmon*; do
  if [ -r "$chip/name" ] && read -r name < "$chip/name" && [ "$name" = rpi_volt ]; then echo "$chip/in0_lcrit_alarm"; fi
done
