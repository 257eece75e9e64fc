# A deadlock that loses a settlement: two sessions settle the same twenty
# executions over two pairs, in opposite order, while expiry and repayment run.
#
# Call by call inside a transaction the order is the caller's: a deadlock may
# happen, its victim gets 40P01, its executions are still STARTED and settle when
# it tries again.  As one batch call each there is none, because a batch takes
# pairs in key order (F1, J2).
#
# Fails when: a batch locks in the order of its arguments, expiry touches what has
# started, or a deadlock is answered as a refusal.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $rounds = 100;
my $node = ledger_node('order', 'deadlock_timeout = 10ms');

publish($node, subject => '*', burst => 1_000_000, holdTtl => '1 millisecond', executionTtl => '1 hour');
$node->safe_psql('postgres', 'CREATE TABLE call (mode text, outcome text, dimension text, state text)');

sub deadlocks
{
	return $node->safe_psql('postgres', 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
}

# prepare starts r1 .. r20 of each round, odd ones on pair a, even ones on pair b.
sub prepare
{
	my ($mode) = @_;

	$node->safe_psql('postgres', <<"SQL");
SELECT count(r) FROM generate_series(1, $rounds) round, generate_series(1, 20) n,
  limitledger.reserve_capacity('$mode ' || CASE n % 2 WHEN 1 THEN 'a' ELSE 'b' END, 'chat', round || ' r' || n, 10,
    sha256('d'), start_operation => round || ' o' || n) r;
SELECT count(r) FROM generate_series(1, 200) n, unnest(ARRAY['a', 'b']) pair,
  limitledger.reserve_capacity('$mode ' || pair, 'chat', 'stranded ' || n, 1, sha256('d')) r;
SQL
}

sub run_both
{
	my ($mode, $forward, $backward) = @_;
	my $before = deadlocks();
	# pgbench repeats a deadlock's victim from the top: count the rounds at the end.
	my $prelude = race_prelude(0.02, 300) =~ s/\\set round :round/\\set round :done/r;
	my @scripts = map { write_script("$mode $_->[0]", "$prelude$_->[1]\\set done :round\n") }
	  ([ 'forward', $forward ], [ 'backward', $backward ]);
	my $chores = write_script('chores', <<'SQL');
SELECT * FROM limitledger.expire_reservations(5);
CALL limitledger.maintain(5);
SQL

	prepare($mode);
	my $worker = bench_start($node, '-c', 2, '-T', 300, '-f', $chores);
	my @runs = map { bench_start($node, '-c', 1, '-t', $rounds, '-D', 'done=0', '--max-tries', 100, '-f', $_) } @scripts;
	$_->finish for @runs;
	is($_->result(0), 0, "$mode: a session settled all of its list") for @runs;
	ok($worker->pumpable, "$mode: the chores never failed");
	$worker->kill_kill;

	value_is($node, <<"SQL", 'SETTLED|' . 20 * $rounds . '|' . 7 * 20 * $rounds, "$mode: every execution is settled once");
SELECT string_agg(DISTINCT state, ' '), count(*), sum(actual_units)
FROM limitledger.reservation WHERE subject LIKE '$mode %' AND operation_id IS NOT NULL
SQL
	value_is($node, <<"SQL", 7 * 20 * $rounds, "$mode: all actuals are in spent");
SELECT sum(spent) FROM limitledger.head_budget WHERE subject LIKE '$mode %'
SQL
	value_is($node, <<"SQL", 'ACCEPTED||SETTLED|' . 40 * $rounds, "$mode: both sessions were told so");
SELECT outcome, dimension, state, count(*) FROM call WHERE mode = '$mode' GROUP BY 1, 2, 3
SQL
	audit_ok($node, $mode);
	return deadlocks() - $before;
}

sub single_calls
{
	my (@numbers) = @_;

	return join("\n", 'BEGIN;',
		map({ my $pair = $_ % 2 ? 'a' : 'b';
			"INSERT INTO call SELECT 'single', r.outcome, r.dimension, r.state FROM limitledger.settle_usage('single $pair', :round || ' r$_', :round || ' o$_', 7) r;" }
			@numbers), 'END;', '');
}

sub batch_call
{
	my ($order) = @_;

	return <<"SQL";
INSERT INTO call SELECT 'batch', r.outcome, r.dimension, r.state
FROM (SELECT array_agg('batch ' || CASE n % 2 WHEN 1 THEN 'a' ELSE 'b' END ORDER BY n $order) s,
             array_agg(:round || ' r' || n ORDER BY n $order) i,
             array_agg(:round || ' o' || n ORDER BY n $order) o
      FROM generate_series(1, 20) n) list,
     limitledger.settle_usage_batch(s, i, o, array_fill(7::bigint, ARRAY[20])) r;
SQL
}

my $deadlocks = run_both('single', single_calls(1 .. 20), single_calls(reverse 1 .. 20));
cmp_ok($deadlocks, '>', 0, "single: the sessions really met ($deadlocks deadlocks)");
is(run_both('batch', batch_call('ASC'), batch_call('DESC')), 0, 'batch: no deadlock');

$node->stop;
done_testing();
