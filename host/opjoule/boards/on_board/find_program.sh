# shellcheck shell=sh
# Prints where a program is: sh find_program.sh NAME PATTERN... On the PATH first, then the last place (the newest
# version) that a pattern fits. Exit status 1: nowhere.
command -v -- "$1" && exit
case $1 in
*.jar | *.so) right=-r ;; # it is read, not executed
*) right=-x ;;
esac
shift
found=
for place; do
  # shellcheck disable=SC2086,SC2231 # a pattern
  for each in $place; do test "$right" "$each" && found=$each; done
done
[ -n "$found" ] && printf '%s\n' "$found"
