#!/bin/bash
# rows.sh: the auditor finds each damage that a superuser does to the rows, with the
# triggers off, of a ledger in which it finds nothing.
#
#   rows.sh AUDITOR SOCKET-FOLDER      a server of the test's own, with the extension
set -euo pipefail

auditor=$1
folder=$2
database=auditor_rows_$$
history=$(mktemp)
tests=0
failed=0

sql() { psql -X -q -v ON_ERROR_STOP=1 -h "$folder" -U postgres -d "$database" "$@"; }
trap 'rm -f "$history"; psql -X -q -h "$folder" -U postgres -d postgres -c "DROP DATABASE IF EXISTS $database"' EXIT
psql -X -q -h "$folder" -U postgres -d postgres -c "CREATE DATABASE $database"

sql >/dev/null <<'SQL'
CREATE EXTENSION limitledger;
SET limitledger.clock_override = '2100-01-04 00:00:00+00';
SELECT limitledger.publish_policy('{"schema": "admissionBudget.v1", "subject": "*", "route": "r", "region": "*",
  "unit": "units", "refill": {"kind": "none"}, "burst": 1000, "epoch": {"length": "1 hour"}, "estimatorDigests": [],
  "largestReservation": 1000, "hardExecutionLimit": 2000, "maximumOverdraft": 500, "holdTtl": "30 seconds",
  "executionTtl": "10 minutes", "retention": "1 day", "priority": 0, "weight": 1, "fairnessBudget": 1000}');
SQL

# The calls are made as the history says, and their answers written down.
n=0
call() {
  local name=$1 args='' field='' a
  shift
  n=$((n + 1))
  printf '>\t%d\t1\t%d\t4102704000000000\tledger\t%s' "$n" "$n" "$name" >>"$history"
  for a in "$@"; do
    printf '\t%s' "$a" >>"$history"
    case $a in '\N') field=NULL ;; ????????????????????????????????????????????????????????????????) field="'\\x$a'" ;; *) field="'$a'" ;; esac
    args+=${args:+, }$field
  done
  echo >>"$history"
  sql -At -F $'\t' -P null='\N' -c "SET limitledger.clock_override = '2100-01-04 00:00:00+00'" -c "
    SELECT * FROM limitledger.$name($args)" |
    perl -pe 's/(\d+)-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\+00/use Time::Local; timegm($6,$5,$4,$3,$2-1,$1) . "000000"/ge; s/^/<\t'"$n"'\trow\t/' >>"$history"
  printf '<\t%d\tdone\n' "$n" >>"$history"
}

printf 'V\t1\t1\t1\nP\tr\t1\t*\t4102704000000000\tnone\t1000\t\\N\t\\N\t3600000000\t1000\t\\N\t2000\t500\t30000000\t600000000\t\\N\t\\N\n' >"$history"
printf 'I\t1\thash\ts\tr\tvirtual\ttest\tnone\n' >>"$history"
digest=$(printf '01%.0s' {1..32})
call reserve_capacity s r a 300 "$digest" '\N' '\N' '\N' '\N' '\N'
call start_reservation s a o
call settle_usage s a o 200 '\N' executor
call reserve_capacity s r b 100 "$digest" '\N' '\N' '\N' '\N' '\N'
call reserve_capacity s r c 200 "$digest" '\N' '\N' '\N' '\N' p
call release_reservation s b
call record_usage s r u 50
call settle_usage s c p 900 '\N' executor
call grant_capacity s r g 200 why
call reserve_capacity s r d 10 "$digest" '\N' '\N' '\N' '\N' '\N'
printf '.\nG\t1\n' >>"$history"

audit() { echo "$history" | "$auditor" "host=$folder user=postgres dbname=$database" || true; }

ok() { # holds name said
  tests=$((tests + 1))
  if [ "$1" = 0 ]; then echo "ok $tests - $2"; else
    failed=$((failed + 1)); echo "not ok $tests - $2"; sed 's/^/# /' <<<"$3"; fi
}

said=$(audit)
grep -q ' discrepancies=0 .* ordered=1' <<<"$said" && rc=0 || rc=1
ok "$rc" 'nothing is found in what was not touched' "$said"

# damage CHECK NAME DO UNDO: both are SQL on the schema's tables.
damage() {
  local check=$1 name=$2
  sql -c "SET session_replication_role = replica; SET search_path = limitledger; $3"
  said=$(audit)
  grep -q "^found $check " <<<"$said" && rc=0 || rc=1
  ok "$rc" "$check: $name" "$said"
  sql -c "SET session_replication_role = replica; SET search_path = limitledger; $4"
}
alter() { sql -c "ALTER TABLE limitledger.head_budget $1"; }

sql -c "CREATE TABLE public.reservation_was AS TABLE limitledger.reservation"
back="DELETE FROM reservation; INSERT INTO reservation SELECT * FROM public.reservation_was"
damage reserved 'a hold that no budget knows' \
  "UPDATE reservation SET reserved_units = 11 WHERE reservation_id = 'd'" "$back"
damage lost_reservation 'a receipt that is gone' "DELETE FROM reservation WHERE reservation_id = 'b'" "$back"
damage started_expired 'a start that expired' \
  "UPDATE reservation SET state = 'EXPIRED', operation_id = NULL, actual_units = NULL WHERE reservation_id = 'a'" "$back"
damage second_settlement 'other figures than were acknowledged' \
  "UPDATE reservation SET actual_units = 199 WHERE reservation_id = 'a'" "$back"
damage excess 'an excess that is not recorded' \
  "UPDATE reservation SET excess_units = 600 WHERE reservation_id = 'c'" "$back"
damage state_order 'a release that is held again' \
  "UPDATE reservation SET state = 'RESERVED' WHERE reservation_id = 'b'" "$back"
damage rows_differ 'another deadline' \
  "UPDATE reservation SET expires_at = expires_at + interval '1 second' WHERE reservation_id = 'd'" "$back"
damage unexplained 'a row that nobody asked for' \
  "INSERT INTO reservation SELECT subject, 'x', route, generation, epoch, 'RELEASED', asked_units, reserved_units, NULL,
     request_digest, NULL, priority, expires_at, reserved_at FROM reservation WHERE reservation_id = 'd'" "$back"
damage binding 'an operation that is bound to another' \
  "UPDATE operation SET reservation_id = 'd' WHERE operation_id = 'o'" \
  "UPDATE operation SET reservation_id = 'a' WHERE operation_id = 'o'"
damage overdraft 'usage that is in no balance' \
  "UPDATE operation SET usage_units = 60 WHERE operation_id = 'u'" \
  "UPDATE operation SET usage_units = 50 WHERE operation_id = 'u'"
damage spent 'spent that nobody used' \
  "UPDATE head_budget SET spent = spent + 5, available = available - 5" \
  "UPDATE head_budget SET spent = spent - 5, available = available + 5"
damage rows_differ 'units out of nothing' \
  "UPDATE head_budget SET minted = minted + 5, available = available + 5" \
  "UPDATE head_budget SET minted = minted - 5, available = available - 5"
damage older 'closed budgets that are not there' \
  "UPDATE head_budget SET older_reserved = 5" "UPDATE head_budget SET older_reserved = 0"
damage shard_retired 'units in no shard' \
  "UPDATE head_budget SET retired_for_emergency = 5, available = available - 5" \
  "UPDATE head_budget SET retired_for_emergency = 0, available = available + 5"
alter 'DROP CONSTRAINT conservation'
damage equation 'units that came from nowhere' \
  "UPDATE head_budget SET available = available + 1" "UPDATE head_budget SET available = available - 1"
alter 'DROP CONSTRAINT available_sign'
damage sign 'a negative balance' \
  "UPDATE head_budget SET available = available - 1000" "UPDATE head_budget SET available = available + 1000"
damage cap 'more than the cap' \
  "UPDATE head_budget SET available = available + 1000" "UPDATE head_budget SET available = available - 1000"

said=$(audit)
grep -q ' discrepancies=0 ' <<<"$said" && rc=0 || rc=1
ok "$rc" 'nothing is found once all is as it was' "$said"
echo "1..$tests"
exit $((failed > 0))
