#!/bin/sh
# Writes settings from the environment into configuration files, as the script of this name in the official image does:
#   KEY=value                sets KEY if the file has it
#   PULSAR_PREFIX_KEY=value  sets KEY, adding it if the file does not have it
# (The name is the official one; there is no Python in this image.)
[ $# -gt 0 ] || { echo "usage: $0 FILE..." >&2; exit 2; }
for file in "$@"; do
  awk '
    BEGIN {
      for (name in ENVIRON) if (name !~ /^PULSAR_PREFIX_/) value[name] = ENVIRON[name]
      for (name in ENVIRON) if (name ~ /^PULSAR_PREFIX_/) { key = substr(name, 15); value[key] = ENVIRON[name]; add[key] = 1 }
    }
    {
      key = $0; sub(/=.*/, "", key); sub(/^#/, "", key); gsub(/^[ \t]+|[ \t]+$/, "", key)
      if (index($0, "=") && key ~ /^[A-Za-z0-9_.]+$/ && key in value) {
        if (!(key in done)) print key "=" value[key]
        done[key] = 1
        next
      }
      print
    }
    END { for (key in add) if (!(key in done)) print key "=" value[key] }
  ' "$file" > "$file.new" && cat "$file.new" > "$file" && rm -f "$file.new" || exit 1
done
