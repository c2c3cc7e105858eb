# shellcheck shell=sh
# Prints how many blocks are free and their size: sh free_space.sh FOLDER [DEVICE]. FOLDER need not be there yet.
# With a DEVICE that is not mounted, all of it: nobody knows yet what will be free on it.
folder=$1 device=$2
LC_ALL=C
export LC_ALL
if [ -n "$device" ] && [ -b "$device" ]; then
  node=$(readlink -f "$device")
  class=/sys/class/block/${node##*/}
  if [ -r "$class/dev" ] && ! grep -q "^[0-9]* [0-9]* $(cat "$class/dev") " /proc/self/mountinfo; then
    echo "$(cat "$class/size") 512" # in sectors of 512 bytes, whatever the device's own are (Documentation/ABI)
    exit
  fi
fi
while [ ! -e "$folder" ]; do
  case $folder in */*) folder=${folder%/*} ;; *) folder=. ;; esac
  [ -n "$folder" ] || folder=/
done
case $(id -u) in 0) free=%f ;; *) free=%a ;; esac # root writes into the reserve too
exec stat -f -c "$free %S" -- "$folder"
