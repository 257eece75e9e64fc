# Eight first requests at the same instant make one budget (B3), under a wildcard
# policy too, and nobody sees an error or a second opening.
#
# Fails when: whoever loses the race to open the budget gets an error, or decides on
# the budget that it has opened in memory instead of on the one that is there.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $rounds = 250;
my $node = ledger_node('first');

publish($node, subject => '*');
$node->safe_psql('postgres',
	'CREATE TABLE call (round int, outcome text, began_at timestamptz, ended_at timestamptz)');

my $script = write_script('first', race_prelude(0.016, 300) . <<'SQL');
INSERT INTO call
SELECT :round, r.outcome, statement_timestamp(), clock_timestamp()
FROM limitledger.reserve_capacity('new ' || :round, 'chat', 'r' || :client_id, 100, sha256('d')) r;
SQL
my ($code, $output) = bench($node, '-c', 8, '-j', 2, '-t', $rounds, '-f', $script);

is($code, 0, 'every first request was answered');
is(failed_transactions($output), 0, 'none failed');
value_is($node, "SELECT outcome, count(*) FROM call GROUP BY 1",
	'ACCEPTED|' . 8 * $rounds, 'all eight were admitted');
value_is($node, <<'SQL', "$rounds|1000|1000|200|200|800|800", 'one budget a subject, opened once at the cap');
SELECT count(*), min(opening), max(opening), min(available), max(available), min(reserved), max(reserved)
FROM limitledger.head_budget
SQL
value_is($node, 'SELECT count(*) FROM limitledger.closed_budget', '0', 'no budget was opened and closed again');
cmp_ok($node->safe_psql('postgres', <<'SQL'), '>=', $rounds / 50, 'first requests really met');
SELECT count(*) FROM (
  SELECT FROM call GROUP BY round
  HAVING (array_agg(began_at ORDER BY began_at))[2] < (array_agg(ended_at ORDER BY began_at))[1]) met
SQL
audit_ok($node, 'after all first requests');

$node->stop;
done_testing();
