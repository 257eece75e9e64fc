# A stranded hold: the caller dies between two steps.  Whatever the step, no id is
# left in a state that no call can move (D10, D14, C2):
# (a) after reserve: the hold ends by itself and the units come back once;
# (b) after start: the units stay held, as unknown usage, until a receipt says more;
# (c) inside settle: it took effect wholly or not at all, and may be called again.
#
# Fails when: reserve does not end due holds before it refuses (a), an ended
# execution gives its units back (b), or settle writes budget and reservation in
# two transactions (c).

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('stranded');

# strand runs `count` clients that die by the last line of their script.
sub strand
{
	my ($count, $sql) = @_;

	for my $batch (1 .. $count / 50)
	{
		my $script = write_script('strand', $sql =~ s/BATCH/$batch/gr
			  . "SELECT pg_terminate_backend(pg_backend_pid());\n");
		my ($code, $output) = bench($node, '-c', 50, '-j', 2, '-t', 1, '-f', $script);
		isnt($code, 0, "batch $batch of 50 clients died");
	}
}

sub equation
{
	my ($subject) = @_;

	return $node->safe_psql('postgres', <<"SQL");
SELECT format('%s + %s + %s = %s + %s + %s + %s + %s', opening, minted, overdraft_issued,
              available, reserved, spent, retired_for_emergency, overdraft_repaid)
FROM limitledger.head_budget WHERE subject = '$subject'
SQL
}

sub states
{
	my ($subject) = @_;

	return $node->safe_psql('postgres',
		"SELECT state, count(*) FROM limitledger.reservation WHERE subject = '$subject' GROUP BY 1 ORDER BY 1");
}

# (a) Clients that die after reserve has committed.
publish($node, subject => 'a', holdTtl => '4 seconds');
strand(200, <<'SQL');
SELECT outcome FROM limitledger.reserve_capacity('a', 'chat', 'BATCH-' || :client_id, 5, sha256('d'));
SQL
is(states('a'), 'RESERVED|200', '(a) 200 holds are stranded');
is(equation('a'), '1000 + 0 + 0 = 0 + 1000 + 0 + 0 + 0', '(a) they hold everything');
$node->poll_query_until('postgres', "SELECT due_units = 1000 FROM limitledger.get_budget('a', 'chat')")
  or die 'the holds never fell due';
value_is($node,
	"SELECT outcome, state, available FROM limitledger.reserve_capacity('a', 'chat', 'next', 1, sha256('d'))",
	'ACCEPTED|RESERVED|999', '(a) with no worker running the next reserve ends them');
is(states('a'), "EXPIRED|200\nRESERVED|1", '(a) all of them are EXPIRED');
$node->safe_psql('postgres', 'CALL limitledger.maintain()');
$node->safe_psql('postgres', "SELECT limitledger.release_reservation('a', 'next')");
is(equation('a'), '1000 + 0 + 0 = 1000 + 0 + 0 + 0 + 0', '(a) their units came back once');
audit_ok($node, '(a)');

# (b) Clients that die after start has committed.
publish($node, subject => 'b', holdTtl => '1 minute', executionTtl => '1 second');
strand(200, <<'SQL');
SELECT outcome FROM limitledger.reserve_capacity('b', 'chat', 'BATCH-' || :client_id, 5, sha256('d'));
SELECT outcome FROM limitledger.start_reservation('b', 'BATCH-' || :client_id, 'op BATCH-' || :client_id);
SQL
$node->poll_query_until('postgres',
	"SELECT count(*) = 200 FROM limitledger.reservation WHERE subject = 'b' AND operation_id IS NOT NULL AND expires_at < clock_timestamp()")
  or die 'the executions never ran out';
value_is($node,
	"SELECT outcome, dimension FROM limitledger.reserve_capacity('b', 'chat', 'next', 1, sha256('d'))",
	'REFUSED|available', '(b) what ran out is not freed');
$node->safe_psql('postgres', 'CALL limitledger.maintain()');
is(states('b'), 'USAGE_UNKNOWN|200', '(b) all of them are unknown');
is(equation('b'), '1000 + 0 + 0 = 0 + 1000 + 0 + 0 + 0', '(b) and hold what they held');
value_is($node, <<'SQL', 'ACCEPTED|SETTLED|200', '(b) a receipt ends each of them');
SELECT s.outcome, s.state, count(*)
FROM (SELECT array_agg(subject) s, array_agg(reservation_id) i, array_agg(operation_id) o, array_agg(2::bigint) a
      FROM limitledger.reservation WHERE subject = 'b') r,
     limitledger.settle_usage_batch(r.s, r.i, r.o, r.a) s
GROUP BY 1, 2
SQL
is(equation('b'), '1000 + 0 + 0 = 600 + 0 + 400 + 0 + 0', '(b) and spends what it says');
audit_ok($node, '(b)');

# (c) Clients that die inside settle.
publish($node, subject => 'c', executionTtl => '1 hour');
$node->safe_psql('postgres', <<'SQL');
SELECT count(*) FROM limitledger.reserve_capacity_batch(
  array_fill('c'::text, ARRAY[200]), array_fill('chat'::text, ARRAY[200]),
  (SELECT array_agg(n::text) FROM generate_series(0, 199) n), array_fill(5::bigint, ARRAY[200]),
  array_fill(sha256('d'), ARRAY[200]), NULL, NULL, NULL, NULL,
  (SELECT array_agg('op ' || n) FROM generate_series(0, 199) n))
SQL
is(states('c'), 'STARTED|200', '(c) 200 executions run');

my $holder = session($node);

# dying_settles lets 100 clients wait for the pair in settle and kills them
# before or after the holder lets go.
sub dying_settles
{
	my ($first, $kill_while_held) = @_;
	my $kill = <<'SQL';
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'bench'
SQL
	my $script = write_script('settle', <<"SQL");
SELECT outcome FROM limitledger.settle_usage('c', (:client_id + $first)::text, 'op ' || :client_id + $first, 2);
SQL

	$holder->query_safe("BEGIN");
	$holder->query_safe("SELECT FROM limitledger.head_budget WHERE subject = 'c' FOR UPDATE");
	my $settles = bench_start($node, '-c', 100, '-j', 2, '-t', 1, '-f', $script);
	wait_blocked($node, 100);
	$node->safe_psql('postgres', $kill) if $kill_while_held;
	$holder->query_safe('ROLLBACK');
	$node->safe_psql('postgres', $kill) if !$kill_while_held;
	$settles->finish;
}

dying_settles(0, 1);
is(states('c'), 'STARTED|200', '(c) killed while they waited: nothing took effect');
audit_ok($node, '(c) killed while they waited');

dying_settles(100, 0);
note 'killed while the queue was moving: ', states('c');
audit_ok($node, '(c) killed while the queue was moving');

value_is($node, <<'SQL', 'ACCEPTED|SETTLED|200', '(c) called again, each has its one receipt');
SELECT s.outcome, s.state, count(*)
FROM (SELECT array_agg(subject) s, array_agg(reservation_id) i, array_agg(operation_id) o, array_agg(2::bigint) a
      FROM limitledger.reservation WHERE subject = 'c') r,
     limitledger.settle_usage_batch(r.s, r.i, r.o, r.a) s
GROUP BY 1, 2
SQL
is(equation('c'), '1000 + 0 + 0 = 600 + 0 + 400 + 0 + 0', '(c) and was counted once');
audit_ok($node, '(c) after the second calls');

$holder->quit;
$node->stop;
done_testing();
