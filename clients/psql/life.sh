#!/usr/bin/env bash
# The life of a reservation, from a shell with psql.
#
#     life.sh SUBJECT        connects by PGHOST, PGPORT, PGUSER, PGDATABASE
#
# Every call may be repeated by the same ids; ask() is all that a lost reply needs.
# What it prints is explained in ../README.md.
set -uo pipefail

# Of a call that ended so nothing is left, or nobody knows: repeat it by the same ids.
REPEAT='40001|40P01|55P03|57014|23505|25006|53300|57P01|57P02|57P03|08...'

RECEIPT="SELECT outcome, dimension, state, CASE WHEN replayed THEN 'yes' ELSE 'no' END,
  reserved_units, actual_units, available, limitledger.retry_after(retry_after_ms)
  FROM limitledger"

export PGCONNECT_TIMEOUT=5
said=$(mktemp) && trap 'rm -f "$said"' EXIT    # what psql says besides the receipt

# call runs a script on a connection of its own; -v hands the values over, and :'name'
# quotes them, so that no value becomes a part of a statement.
call() {
  local script=$1
  shift
  psql -XqAt -F '|' -P null=- -v ON_ERROR_STOP=1 -v VERBOSITY=sqlstate "$@" 2>"$said" <<<"$script"
}

# pause is full jitter: callers that failed together do not come back together.
pause() {
  local most=$((50 << ($1 - 1))) milliseconds
  ((most <= 2000)) || most=2000
  ((milliseconds = RANDOM % most, 1))
  sleep "$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))"
}

# ask TRIES SCRIPT NAME=VALUE... makes a call until its answer counts: `receipt` and
# `tries` are what it says. Status 1: neither yes nor no; ask by the same ids later, or
# resolve_reservation.
ask() {
  local most=$1 script=$2 set=() value status
  shift 2
  for value in "$@"; do set+=(-v "$value"); done
  for ((tries = 1; tries <= most; tries++)); do
    receipt=$(call "$script" "${set[@]}")
    status=$?
    # A WARNING 01000 at COMMIT, not confirmed by the standby, is as good as no reply.
    if ((status == 0)) && ! grep -q 'WARNING: *01000' "$said"; then return 0; fi
    # 3 is an error in the script; 2 is a broken connection, or none.
    if ((status == 3)) && ! grep -qE "(ERROR|FATAL): *($REPEAT)" "$said"; then
      cat "$said" >&2
      exit 1
    fi
    ((tries == most)) || pause "$tries"
  done
  return 1
}

# An explicit transaction, as for a gateway that writes a row of its own along: the
# receipt counts once COMMIT has succeeded, that is, once psql has ended well.
RESERVE="BEGIN;
$RECEIPT.reserve_capacity(:'subject', 'chat', :'reservation', :'units', limitledger.request_digest(:'request'));
COMMIT;"

# These are transactions of their own: psql commits each statement.
START="$RECEIPT.start_reservation(:'subject', :'reservation', :'operation');"
SETTLE="$RECEIPT.settle_usage(:'subject', :'reservation', :'operation', :'actual');"
RELEASE="$RECEIPT.release_reservation(:'subject', :'reservation');"
RESOLVE="$RECEIPT.resolve_reservation(:'subject', :'reservation', limitledger.request_digest(:'request'));"

line() { printf '%-8s %-4s %5s  %-9s %-10s %-9s %-8s %8s %6s %9s %11s\n' "$@"; }
show() {
  local cells
  IFS='|' read -ra cells <<<"$receipt"
  line "$1" "$2" "$tries" "${cells[@]}"
}
no_answer() { echo "$1: no answer: $(<"$said")" >&2; exit 1; }

subject=$1
line step id tries outcome dimension state replayed reserved actual available retry-after

# Ids are chosen once per request of a client, a UUID say, and kept over all tries.
# ACCEPTED alone is not enough: a late repeat may find that its hold has ended.
r1=("subject=$subject" reservation=r-1)
ask 8 "$RESERVE" "${r1[@]}" units=600 request='{"prompt": "hello"}' || no_answer r-1
show reserve r-1
[[ $receipt == 'ACCEPTED|-|RESERVED|'* ]] || { echo 'r-1 holds nothing: do not go on' >&2; exit 1; }

# The executor's part. It runs nothing before this has been accepted.
ask 8 "$START" "${r1[@]}" operation=op-1 || no_answer r-1
show start r-1
[[ $receipt == 'ACCEPTED|-|STARTED|'* ]] || { echo 'r-1 may not run' >&2; exit 1; }
ask 8 "$SETTLE" "${r1[@]}" operation=op-1 actual=200 || no_answer r-1
show settle r-1

# A caller that can't wait tries once. Whether there was an answer or none, nothing
# stays behind: resolve says what became of it, or fences the id, and release gives back.
r2=("subject=$subject" reservation=r-2)
if ask 1 "$RESERVE" "${r2[@]}" units=300 request='{"prompt": "good morning"}'; then
  show reserve r-2
else
  echo 'reserve  r-2      1  no answer'
fi
ask 8 "$RESOLVE" "${r2[@]}" request='{"prompt": "good morning"}' || no_answer r-2
show resolve r-2
ask 8 "$RELEASE" "${r2[@]}" || no_answer r-2
show release r-2

# A refusal is a result: 429 with Retry-After in seconds, and no retry from here.
ask 8 "$RESERVE" "subject=$subject" reservation=r-3 units=1000 request='{"prompt": "long"}' || no_answer r-3
show reserve r-3
