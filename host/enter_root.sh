#!/bin/sh
# enter_root.sh ROOT NAME PROGRAM [ARGUMENT...]: runs a program in the root file system in the folder ROOT, on a computer
# of that name. It runs as the first process of new mount, process and host name namespaces, which end with it. Of this
# computer's devices, none but the terminal is seen inside. ROOT becomes a mount point, as a root usually is.
set -eu
root=$1 name=$2
shift 2
hostname "$name"
mount --rbind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" # a sysfs of its own needs a network of its own
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
  ln -s "/proc/self/fd/${number%:*}" "$root/dev/${number#*:}"
done
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
# Not by exec: as the first process, this shell collects the orphans, and no signal is ignored in the program.
status=0
chroot "$root" "$@" || status=$?
exit "$status"
