# Background workers: what is due is done with nobody calling (J4, D10, D14, E3), in
# time, by workers that show what they are and leave a database that has nothing to do.
#
# Fails when: a commit does not tell the workers of its deadline, a worker sleeps on
# past it, stays without need or does not come back, or a row that is locked delays
# others (F3).

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;
use Time::HiRes qw(time);

my $node = ledger_node('workers', "shared_preload_libraries = 'limitledger'",
	"limitledger.worker_linger = '300ms'", "limitledger.audit_interval = '1h'");
my $HERE = "SELECT string_agg(backend_type, ', ' ORDER BY backend_type) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'";

# soon waits until a query says true.
sub soon
{
	my ($query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until('postgres', $query), $name) or diag($node->safe_psql('postgres', 'SELECT * FROM limitledger.workers'));
}

sub reserve
{
	my ($subject, $id, $units, $more) = @_;

	return $node->safe_psql('postgres', sprintf q(SELECT outcome FROM limitledger.reserve_capacity('%s', 'chat', '%s', %d, sha256('d')%s)),
		$subject, $id, $units, $more // '');
}

sub state
{
	my ($subject, $id) = @_;

	return "(SELECT state FROM limitledger.reservation WHERE (subject, reservation_id) = ('$subject', '$id'))";
}

# ---- An idle database is left alone ---------------------------------------------

soon("SELECT last_run_at IS NOT NULL FROM limitledger.workers WHERE job = 'verify_conservation'",
	'a new ledger is audited at once');
soon("SELECT ($HERE) = 'limitledger launcher'", 'then only the launcher is left');
value_is($node, "SELECT datname, state, query FROM pg_stat_activity WHERE backend_type = 'limitledger launcher'",
	'|idle|waiting for what is due next', 'which is in no database');
value_is($node, "SELECT job, backend_type, status FROM limitledger.workers", <<'ROWS' =~ s/\n\z//r, 'the view shows every job');
claim_expiring|limitledger expiry|away
finish_expiring|limitledger expiry|away
expire_executions|limitledger expiry|away
sweep_shards|limitledger expiry|away
repay_debtors|limitledger repayment|away
purge_reservations|limitledger repayment|away
purge_usage|limitledger repayment|away
purge_budgets|limitledger repayment|away
verify_conservation|limitledger repayment|away
ROWS

# ---- Holds ------------------------------------------------------------------------

publish($node, subject => 'h', holdTtl => '2 seconds');
is(reserve('h', 'h1', 100), 'ACCEPTED', 'a hold');
soon("SELECT next_at - clock_timestamp() > interval '0.5 seconds' FROM limitledger.workers WHERE job = 'claim_expiring'",
	'its deadline is on the board');
value_is($node, "SELECT pid FROM limitledger.workers WHERE job = 'claim_expiring'", '', 'and nobody stays for it');
soon('SELECT ' . state('h', 'h1') . " = 'EXPIRED'", 'it expires by itself');
value_is($node, "SELECT available, reserved FROM limitledger.budgets WHERE subject = 'h'", '1000|0', 'its units are back');
value_is($node, "SELECT ended_at - expires_at < interval '1 second' FROM limitledger.reservations WHERE subject = 'h'",
	't', 'within a second');

# A deadline that comes sooner than the one that the worker waits for.
publish($node, subject => 'l', holdTtl => '1 hour');
publish($node, subject => 's', holdTtl => '1 second');
is(reserve('l', 'l1', 1), 'ACCEPTED', 'a long hold');
soon("SELECT next_at > clock_timestamp() + interval '30 minutes' FROM limitledger.workers WHERE job = 'claim_expiring'",
	'the worker is due in an hour');
is(reserve('s', 's1', 1), 'ACCEPTED', 'a short one');
soon('SELECT ' . state('s', 's1') . " = 'EXPIRED'", 'does not wait for the long one');
value_is($node, "SELECT max(ended_at - expires_at) < interval '1 second' FROM limitledger.reservations WHERE state = 'EXPIRED'",
	't', 'not a second');
$node->psql('postgres', <<'SQL');
BEGIN;
SELECT limitledger.reserve_capacity('s', 'chat', 's2', 1, sha256('d'));
ROLLBACK;
SQL
soon("SELECT ($HERE) = 'limitledger launcher'", 'a deadline that was rolled back keeps nobody there');
value_is($node, 'SELECT ' . state('l', 'l1'), 'RESERVED', 'and the long one stands');

# ---- Executions -------------------------------------------------------------------

publish($node, subject => 'x', executionTtl => '1 second');
is(reserve('x', 'x1', 10, ", start_operation => 'o1'"), 'ACCEPTED', 'an execution');
soon('SELECT ' . state('x', 'x1') . " = 'USAGE_UNKNOWN'", 'past its deadline it is unknown');
value_is($node, "SELECT reserved FROM limitledger.budgets WHERE subject = 'x'", '10', 'and holds what it held');

# ---- Debt -------------------------------------------------------------------------

publish($node, subject => 'd', refill => { kind => 'continuous', units => 100, interval => '1 second' }, burst => 100);
is(reserve('d', 'd1', 100, ", start_operation => 'od1'"), 'ACCEPTED', 'an execution');
value_is($node, "SELECT state FROM limitledger.settle_usage('d', 'd1', 'od1', 300)", 'SETTLED_WITH_DEBT', 'that used too much');
soon("SELECT overdraft_repaid > 0 AND debt = 0 FROM limitledger.budgets WHERE subject = 'd'", 'refill pays the debt, with no call');
is(reserve('d', 'd2', 1), 'ACCEPTED', 'and the pair admits again');

# Nothing refills this one: no worker may come for it again and again.
publish($node, subject => 'n', burst => 10);
is(reserve('n', 'n1', 10, ", start_operation => 'on1'"), 'ACCEPTED', 'an execution where nothing refills');
value_is($node, "SELECT state FROM limitledger.settle_usage('n', 'n1', 'on1', 20)", 'SETTLED_WITH_DEBT', 'that used too much');
soon("SELECT ($HERE) = 'limitledger launcher'", 'a debt that nothing repays keeps nobody there');

# ---- What is locked ---------------------------------------------------------------

publish($node, subject => $_, holdTtl => '1 second') for qw(k1 k2 k3);
my $client = session($node);
my @other = (session($node), session($node));

is(reserve("k$_", 'r', 100), 'ACCEPTED', "a hold of pair $_") for 1 .. 3;
$client->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'k1' FOR UPDATE";
$other[0]->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.reservation WHERE subject = 'k2' FOR UPDATE";
soon('SELECT ' . state('k3', 'r') . " = 'EXPIRED'", 'neither a locked pair nor a locked hold delays a third pair');
is(reserve('k3', 'again', 100), 'ACCEPTED', 'nor the one after that');
soon('SELECT ' . state('k3', 'again') . " = 'EXPIRED'", 'which expires too');
value_is($node, "SELECT max(ended_at - expires_at) < interval '1 second' FROM limitledger.reservations WHERE subject = 'k3'",
	't', 'within a second');
value_is($node, 'SELECT ' . state('k1', 'r') . ', ' . state('k2', 'r'), 'EXPIRING|RESERVED', 'the locked ones are left');
$client->query_safe('ROLLBACK');
$other[0]->query_safe('ROLLBACK');
soon('SELECT ' . state('k1', 'r') . " = 'EXPIRED' AND " . state('k2', 'r') . " = 'EXPIRED'", 'until they are free');

# The debt of a locked pair, and of another.
publish($node, subject => $_, refill => { kind => 'continuous', units => 1000, interval => '1 second' }, burst => 100) for qw(m1 m2);
$client->query_safe($_) for 'BEGIN', "SELECT outcome FROM limitledger.reserve_capacity('m1', 'chat', 'r', 100, sha256('d'), start_operation => 'o')", 'COMMIT';
$client->query_safe($_) for "SELECT state FROM limitledger.settle_usage('m1', 'r', 'o', 500)", 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'm1' FOR UPDATE";
is(reserve('m2', 'r', 100, ", start_operation => 'o'"), 'ACCEPTED', 'another execution');
value_is($node, "SELECT state FROM limitledger.settle_usage('m2', 'r', 'o', 500)", 'SETTLED_WITH_DEBT', 'that used too much');
soon("SELECT overdraft_repaid > 0 AND debt = 0 FROM limitledger.budgets WHERE subject = 'm2'", 'a locked pair that owes delays no other');
value_is($node, "SELECT overdraft_repaid FROM limitledger.budgets WHERE subject = 'm1'", '0', 'it still owes');
$client->query_safe('ROLLBACK');
soon("SELECT overdraft_repaid > 0 AND debt = 0 FROM limitledger.budgets WHERE subject = 'm1'", 'until it is free');

# ---- Many -------------------------------------------------------------------------

publish($node, subject => '*', route => 'many', holdTtl => '4 seconds', burst => 100_000);
value_is($node, <<'SQL', 10_000, '10,000 holds fall due at once');
SELECT count(*) FROM limitledger.reserve_capacity_batch(
  (SELECT array_agg('m' || n % 100) FROM generate_series(1, 10000) n), array_fill('many'::text, ARRAY[10000]),
  (SELECT array_agg('m' || n) FROM generate_series(1, 10000) n), array_fill(1::bigint, ARRAY[10000]),
  array_fill(sha256('d'), ARRAY[10000])) WHERE outcome = 'ACCEPTED'
SQL
soon("SELECT count(*) = 10000 FROM limitledger.reservation WHERE route = 'many' AND state = 'EXPIRED'", 'all of them expire');
note 'the last one ', $node->safe_psql('postgres',
	"SELECT max(ended_at - expires_at) FROM limitledger.reservation WHERE route = 'many'"), ' after its deadline';
value_is($node, "SELECT sum(available) = 100 * 100000, sum(reserved) FROM limitledger.budgets WHERE route = 'many'", 't|0', 'all units are back, once');

# ---- Retention ----------------------------------------------------------------------

publish($node, subject => 'old', retention => '1 second');
is(reserve('old', 'gone', 100, ", start_operation => 'o'"), 'ACCEPTED', 'an execution that is kept for a second');
value_is($node, "SELECT state FROM limitledger.settle_usage('old', 'gone', 'o', 30)", 'SETTLED', 'after it has ended');
value_is($node, "SELECT outcome FROM limitledger.record_usage('old', 'chat', 'ran', 5)", 'ACCEPTED', 'and usage likewise');
$node->append_conf('postgresql.conf', 'limitledger.purge_interval = 1');
$node->reload;
soon("SELECT count(*) = 0 FROM limitledger.reservation WHERE subject = 'old'", 'a worker purges it, with no call');
soon("SELECT count(*) = 0 FROM limitledger.operation WHERE subject = 'old'", 'with its operation, and the usage');
value_is($node, "SELECT spent, purged_spent FROM limitledger.budgets WHERE subject = 'old'", '35|35', 'the budget keeps the sum');
value_is($node, "SELECT count(*) FROM limitledger.reservation WHERE route = 'many'", '10000', 'what is to be kept is kept');

audit_ok($node, 'at the end');
$_->quit for $client, @other;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/(?:ERROR|WARNING|FATAL|PANIC):/, 'nothing of it is in the log');
$node->stop;
done_testing();
