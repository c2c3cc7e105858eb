# shellcheck shell=sh
# Answers each line with the kernel's Dirty and Writeback memory [KiB].
while read -r _; do
  sum=0
  while read -r name value _; do
    case $name in Dirty:|Writeback:) sum=$((sum + value)) ;; esac
  done < /proc/meminfo
  echo "$sum"
done
