#!/bin/sh
# Kills writers of a tuning database (kill -9) at random moments and checks after each time that the file is sound and that every row
# whose commit was reported is there. Two writers run at once; every fourth round starts with a new file, so that creation is hit too.
#   scripts/db_kill_test.sh BUILD_FOLDER/tests/db/db_writer [ROUNDS=200]
# SPDX-License-Identifier: Apache-2.0
set -eu
writer=${1:?usage: db_kill_test.sh DB_WRITER [ROUNDS]}
rounds=${2:-200}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
db=$folder/tuning.db
: > "$folder/committed"

round=0
while [ "$round" -lt "$rounds" ]; do
  if [ $((round % 4)) -eq 0 ]; then
    rm -f "$db" "$db-wal" "$db-shm" "$db-journal"
    : > "$folder/committed"
  fi
  "$writer" write "$db" "a$round" 100000 > "$folder/a.out" 2> "$folder/a.err" &
  first=$!
  "$writer" write "$db" "b$round" 100000 > "$folder/b.out" 2> "$folder/b.err" &
  second=$!
  # 0 to 255 ms, short ones too: the first milliseconds create the file.
  sleep "0.$(printf %03d "$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')")"
  kill -9 "$first" "$second" 2> /dev/null || true
  wait "$first" 2> /dev/null || true
  wait "$second" 2> /dev/null || true
  cat "$folder/a.err" "$folder/b.err" >&2
  if [ -s "$folder/a.err" ] || [ -s "$folder/b.err" ]; then
    echo "round $round: a writer failed before it was killed" >&2
    exit 1
  fi
  cat "$folder/a.out" "$folder/b.out" >> "$folder/committed"
  "$writer" check "$db" || { echo "round $round: db check has findings" >&2; exit 1; }
  "$writer" verify "$db" < "$folder/committed" || { echo "round $round: committed rows are missing" >&2; exit 1; }
  round=$((round + 1))
done
echo "$rounds rounds: every database sound, no committed row lost"
