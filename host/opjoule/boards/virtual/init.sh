#!/bin/busybox sh
# shellcheck shell=dash disable=SC2034
# Init of the virtual board's initial RAM disk: loads a few modules and mounts the root disk.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for module in $(/bin/busybox cat /modules/order); do
  /bin/busybox insmod "/modules/$module"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  device=$(/bin/busybox findfs LABEL=board-root) && break
  /bin/busybox sleep 0.2
done
/bin/busybox mount -t ext4 -o noatime "$device" /root
/bin/busybox mount --move /dev /root/dev
/bin/busybox umount /proc /sys
exec /bin/busybox switch_root /root /sbin/init
