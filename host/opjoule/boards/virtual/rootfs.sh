#!/bin/sh
# Makes the virtual board's root file system and kernel. Runs as root of a private namespace (namespace.py).
#   rootfs.sh WORK MIRROR PUBLIC_KEY        WORK/site: Python packages for the board
# Leaves WORK/root.ext4, WORK/vmlinuz, WORK/modules/ (for the initrd), WORK/busybox and WORK/packages.
set -eu
work=$1 mirror=$2 public_key=$3
suite=bookworm
packages=systemd-sysv,udev,openssh-server,e2fsprogs,util-linux,procps,sudo,iproute2,kmod,dbus,fdisk
root=$work/root
mkdir -p "$work"

# The host keys are made by this computer: under emulation an RSA key takes up to a minute.
host_keys='mkdir -p "$1/etc/ssh"
for kind in rsa ecdsa ed25519; do
  ssh-keygen -q -N "" -C virtual-board -t "$kind" -f "$1/etc/ssh/ssh_host_${kind}_key"
done'
mmdebstrap --quiet --mode=root --skip=check/qemu,chroot/mount/sys --variant=minbase --architectures=arm64 \
  --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --essential-hook="$host_keys" "$suite" "$root" "$mirror"
chroot "$root" dpkg-query -W -f '${Package} ${Version}\n' > "$work/packages"

# Kernel and Python are unpacked, not installed: the kernel's own initrd step takes minutes under emulation.
apt_dir=$work/apt
mkdir -p "$apt_dir/state/lists/partial" "$apt_dir/cache/archives/partial" "$apt_dir/dpkg" "$work/python/partial"
: > "$apt_dir/dpkg/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$apt_dir/sources.list"
cat > "$apt_dir/apt.conf" <<EOF
APT::Architecture "arm64"; APT::Architectures { "arm64"; };
Dir::State "$apt_dir/state"; Dir::Cache "$apt_dir/cache"; Dir::State::status "$apt_dir/dpkg/status";
Dir::Etc::sourcelist "$apt_dir/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::parts "/dev/null";
APT::Sandbox::User "root"; Acquire::Languages "none";
EOF
export APT_CONFIG="$apt_dir/apt.conf"
apt-get -qq update
kernel=$(apt-cache depends linux-image-arm64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
(cd "$work" && apt-get -qq download "$kernel" busybox-static)
mkdir "$work/kernel" "$work/static"
dpkg -x "$work"/linux-image-*.deb "$work/kernel"
dpkg -x "$work"/busybox-static_*.deb "$work/static"
cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
cp "$work/static/bin/busybox" "$work/busybox"

# Python and the locked packages, compiled where this computer's Python is of the same version: for measuring on the board itself.
(cd "$work" && apt-get -qq -o Dir::State::status="$root/var/lib/dpkg/status" -o Dir::Cache::archives="$work/python/" \
  install --download-only --no-install-recommends -y python3)
for package in "$work"/python/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
done
cp -a "$work/site/." "$root/usr/lib/python3/dist-packages/"
python3 -m compileall -q -s "$root" "$root/usr/lib/python3.11" || :

echo "$kernel $(dpkg-deb -f "$work"/linux-image-*.deb Version)" >> "$work/packages"

release=$(ls "$work/kernel/lib/modules")
modules=$root/lib/modules/$release
mkdir -p "$modules"
(cd "$work/kernel/lib/modules/$release" && cp --parents -r modules.* kernel/fs/ext4 kernel/fs/jbd2 kernel/fs/mbcache.ko \
  kernel/lib kernel/crypto kernel/drivers/block kernel/drivers/virtio kernel/drivers/char/hw_random kernel/drivers/md \
  kernel/drivers/net/virtio_net.ko kernel/drivers/net/net_failover.ko kernel/net/core kernel/arch "$modules")
chroot "$root" depmod "$release"
mkdir "$work/modules"
for module in $(chroot "$root" modprobe -S "$release" -a --show-depends virtio_mmio virtio_blk ext4 crc32c_generic |
  sed -n 's/^insmod \(\S*\).*/\1/p' | awk '!seen[$0]++'); do
  cp "$root$module" "$work/modules/"
  basename "$module" >> "$work/modules/order"
done

# The board: one user without rights and one with sudo, both let in by one key.
for user in plain rig; do
  chroot "$root" useradd --create-home --shell /bin/bash "$user"
  install -d -m 700 "$root/home/$user/.ssh"
  cp "$public_key" "$root/home/$user/.ssh/authorized_keys"
  chroot "$root" chown -R "$user:$user" "/home/$user/.ssh"
done
echo 'rig ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/rig"
echo 'KERNEL=="gpiochip*", MODE="0666"' > "$root/etc/udev/rules.d/60-gpio.rules"
echo virtual-board > "$root/etc/hostname"
echo '127.0.0.1 localhost virtual-board' > "$root/etc/hosts"
echo '/dev/disk/by-label/board-root / ext4 noatime 0 1' > "$root/etc/fstab"
cat > "$root/etc/systemd/network/wired.network" <<'EOF'
[Match]
Driver=virtio_net
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
DHCP=no
LinkLocalAddressing=no
IPv6AcceptRA=no
EOF
printf 'virtio_net\nloop\n' > "$root/etc/modules-load.d/board.conf"
printf 'UseDNS no\nGSSAPIAuthentication no\nMaxSessions 40\n' > "$root/etc/ssh/sshd_config.d/board.conf"
chroot "$root" systemctl enable --quiet systemd-networkd
for unit in systemd-networkd-wait-online systemd-timesyncd systemd-logind e2scrub_reap getty@tty1 serial-getty@ttyAMA0 \
  systemd-random-seed systemd-network-generator systemd-update-utmp; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit.service" # nothing here needs them, and each costs a second under emulation
done
cp "$root"/etc/ssh/ssh_host_ed25519_key.pub "$work/host_key.pub"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*

truncate -s 2G "$work/root.ext4"
mkfs.ext4 -q -L board-root -E lazy_itable_init=0 -d "$root" "$work/root.ext4"
