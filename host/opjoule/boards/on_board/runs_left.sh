# shellcheck shell=sh
# Prints the folders of loaders that ran, each ended by a NUL: sh runs_left.sh SESSION_FOLDER...
for session; do
  for folder in "$session"/*; do
    if [ -d "$folder" ] && [ ! -h "$folder" ] && [ -e "$folder/pid" ]; then printf '%s\0' "$folder"; fi
  done
done
