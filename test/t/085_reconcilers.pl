# Many reconcilers at once: each item of unknown usage is claimed by one of them, once
# within its lease, and settlements go on meanwhile (D10).
#
# Fails when: a claim acts on the row as it was found and not as it was locked, or a
# claim waits for a row that is being settled.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $items = 3000;
my $node = ledger_node('reconcilers', 'fsync = off');

publish($node, subject => '*', burst => 1_000_000, executionTtl => '1 hour');
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE got (reservation_id text, pid int DEFAULT pg_backend_pid());
CREATE SEQUENCE settling;
SELECT count(*) FROM limitledger.reserve_capacity_batch(
  ARRAY(SELECT 't' || i % 20 FROM generate_series(1, $items) i), ARRAY(SELECT 'chat' FROM generate_series(1, $items) i),
  ARRAY(SELECT 'r' || i FROM generate_series(1, $items) i), ARRAY(SELECT 10::bigint FROM generate_series(1, $items) i),
  ARRAY(SELECT sha256('x') FROM generate_series(1, $items) i), start_operations => ARRAY(SELECT 'o' || i FROM generate_series(1, $items) i));
SET limitledger.clock_override = '2100-01-01 00:00:00+00';
SELECT unknown FROM limitledger.expire_executions($items);
SQL
value_is($node, q(SELECT count(*) FROM limitledger.unknown_usage), $items, 'all of them are unknown');

# Every third item gets a receipt of its executor while reconcilers are at work.
my $claim = write_script('claim', <<'SQL');
INSERT INTO got (reservation_id) SELECT reservation_id FROM limitledger.claim_unknown_usage(7, '1 hour', 'client ' || :client_id);
SQL
my $settle = write_script('settle', <<'SQL');
WITH n AS (SELECT nextval('settling') * 3 AS n)
SELECT outcome FROM n, LATERAL limitledger.settle_usage('t' || n % 20, 'r' || n, 'o' || n, 5);
SQL
my ($code, $output) = bench($node, '--client=8', '--jobs=2', '--transactions=100', '--file', "$claim\@3", '--file', "$settle\@1");
is($code, 0, 'nobody fails');
is(failed_transactions($output), 0, 'nor has to repeat anything');

# Who was beaten to everything claims what is left.
$node->safe_psql('postgres', q(INSERT INTO got (reservation_id) SELECT reservation_id FROM limitledger.claim_unknown_usage(100000, '1 hour')));
value_is($node, 'SELECT count(*) - count(DISTINCT reservation_id) FROM got', '0', 'no item was claimed twice');
value_is($node, q(SELECT count(*) FROM limitledger.unknown_usage u WHERE NOT EXISTS (SELECT FROM got WHERE got.reservation_id = u.reservation_id)),
	'0', 'and none that is still unknown was left out');
value_is($node, q(SELECT count(*) FROM got WHERE reservation_id NOT IN (SELECT reservation_id FROM limitledger.reservations WHERE claimed_by IS NOT NULL)),
	'0', 'each shows who has it');
value_is($node, 'SELECT count(DISTINCT pid) > 4 FROM got', 't', 'they shared the work');
value_is($node, q(SELECT count(*) > 100 FROM limitledger.reservations WHERE state = 'SETTLED'), 't', 'and receipts came meanwhile');
value_is($node, 'SELECT count(*) FROM limitledger.claim_unknown_usage(100000)', '0', 'nothing is left to claim');
audit_ok($node, 'after all that');

$node->stop;
done_testing();
