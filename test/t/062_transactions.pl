# A call inside somebody's transaction: two-phase commit, read-only, savepoints
# (F5, D3).
#
# Fails when: the mark that a transaction wrote is kept over a rolled-back savepoint
# or dropped by a released one, or a writer starts to write in a read-only
# transaction before it looks.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('transactions', 'max_prepared_transactions = 5');
my $session = session($node);
my $number = 0;

publish($node);
$session->query_safe('CREATE TABLE own (n int)');

sub reserve
{
	my ($units) = @_;

	$number++;
	return "SELECT outcome FROM limitledger.reserve_capacity('t1', 'chat', 'r$number', $units, sha256('d'))";
}

# prepare runs statements in a transaction, then PREPARE TRANSACTION; it returns
# the SQLSTATE, or 00000.
sub prepare
{
	my (@statements) = @_;

	$session->query_safe($_) for 'BEGIN', 'INSERT INTO own VALUES (1)', @statements;
	my ($state) = $session->query("PREPARE TRANSACTION 'p';\n\\echo :SQLSTATE");
	$session->{stderr} = '';
	$session->query_safe("ROLLBACK PREPARED 'p'") if $state eq '00000';   # else it is rolled back already
	return $state;
}

is(prepare(), '00000', 'a transaction without a ledger call may be prepared');
is(prepare(reserve(10)), 'LL302', 'one that reserved may not');
is(prepare("SELECT FROM limitledger.get_budget('t1', 'chat')"), '00000', 'one that only read may');
is(prepare(reserve(5000)), '00000', 'one that was refused may: it wrote nothing');
is(prepare('SAVEPOINT s', reserve(10), 'ROLLBACK TO s'), '00000', 'one whose writing savepoint was rolled back may');
is(prepare('SAVEPOINT s', reserve(10), 'RELEASE s'), 'LL302', 'one whose writing savepoint was released may not');
is(prepare('SAVEPOINT s', reserve(10), 'ROLLBACK TO s', reserve(10)), 'LL302', 'nor one that wrote again after that');
is(prepare(reserve(10), 'SAVEPOINT s', reserve(10), 'ROLLBACK TO s'), 'LL302', 'nor one that wrote before it');
is(prepare('SAVEPOINT a', reserve(10), 'RELEASE a', 'SAVEPOINT b', 'ROLLBACK TO b'), 'LL302', 'a released one is not undone by a later one');
is(prepare('SAVEPOINT a', 'SAVEPOINT b', reserve(10), 'RELEASE b', 'ROLLBACK TO a'), '00000', 'an inner one goes with the outer');
is(prepare('SAVEPOINT a', 'SAVEPOINT b', reserve(10), 'ROLLBACK TO b', 'RELEASE a'), '00000', 'the outer one stays clean');

$session->query_safe($_) for 'BEGIN', reserve(10);
$session->query("PREPARE TRANSACTION 'p'");
like($session->{stderr}, qr/ERROR:  .*\n?DETAIL:  .*\n?HINT:  /, 'the refusal has a detail and a hint');
$session->query("ROLLBACK PREPARED 'p'");   # nothing, unless that failed
$session->{stderr} = '';
value_is($node, 'SELECT count(*) FROM limitledger.reservation', '0', 'none of these left a reservation');
audit_ok($node, 'after two-phase commits');

# Each other writer marks its transaction too.
$session->query_safe("SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'w$_', 10, sha256('d'))") for 1 .. 5;
$session->query_safe("SELECT FROM limitledger.start_reservation('t1', 'w1', 'o1')");
$session->query_safe("SELECT FROM limitledger.start_reservation('t1', 'w2', 'o2')");
is(prepare("SELECT FROM limitledger.$_"), 'LL302', "$_ may not be prepared") for
  "start_reservation('t1', 'w3', 'o3')",
  "settle_usage('t1', 'w1', 'o1', 4)",
  "report_usage_unknown('t1', 'w2', 'o2')",
  "release_reservation('t1', 'w4')",
  "resolve_reservation('t1', 'w99', sha256('d'))",
  "reserve_capacity_batch(ARRAY['t1'], ARRAY['chat'], ARRAY['w98'], ARRAY[1], ARRAY[sha256('d')])";

# Read only: an error of the server's own, never a refusal.
foreach my $call (
	"reserve_capacity('t1', 'chat', 'ro', 10, sha256('d'))",
	"reserve_capacity('t1', 'chat', 'ro', 5000, sha256('d'))",
	"start_reservation('t1', 'w3', 'o3')",
	"settle_usage('t1', 'w1', 'o1', 4)",
	"report_usage_unknown('t1', 'w2', 'o2')",
	"release_reservation('t1', 'w4')",
	"resolve_reservation('t1', 'w99', sha256('d'))",
	"expire_reservations()",
	"repay_debt('t1', 'chat')",
	"unfreeze('t1', 'chat', 'because')")
{
	$session->query_safe('BEGIN READ ONLY');
	my ($state) = $session->query("SELECT FROM limitledger.$call;\n\\echo :SQLSTATE");
	$session->{stderr} = '';
	$session->query_safe('ROLLBACK');
	is($state, '25006', "read only: $call");
}
is($session->query_safe("BEGIN READ ONLY;\nSELECT outcome, state FROM limitledger.get_reservation('t1', 'w1');\nROLLBACK"),
	'ACCEPTED|STARTED', 'read only: get_reservation answers');
is($session->query_safe("BEGIN READ ONLY;\nSELECT reserved FROM limitledger.get_budget('t1', 'chat');\nROLLBACK"),
	'50', 'read only: get_budget answers');

# A savepoint rolled back leaves no trace, and burns no id.
$session->query_safe($_) for 'BEGIN', reserve(100), 'SAVEPOINT s', reserve(200);
my $burnt = "r$number";
$session->query_safe("SELECT FROM limitledger.start_reservation('t1', '$burnt', 'op')");
$session->query_safe($_) for 'ROLLBACK TO s',
  "SELECT FROM limitledger.reserve_capacity('t1', 'chat', '$burnt', 300, sha256('other'))", 'COMMIT';
is($session->query_safe("SELECT state, reserved_units FROM limitledger.get_reservation('t1', '$burnt')"),
	'RESERVED|300', 'an id of a rolled-back savepoint is free for another request');
is($session->query_safe("SELECT available, reserved FROM limitledger.get_budget('t1', 'chat')"), '550|450', 'and its units too');
is($session->query_safe("SELECT outcome FROM limitledger.start_reservation('t1', 'w5', 'op')"), 'ACCEPTED', 'and its operation');
audit_ok($node, 'after savepoints');

$session->quit;
$node->stop;
done_testing();
