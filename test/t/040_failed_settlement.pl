# A half-done settlement, counted twice: settle of 200 out of 600 is made to fail
# at every step in turn.  After each failure nothing has moved; called again, it
# spends 200 once (D6, C1).
#
# All calls come from one session that stays open, so that triggers which appear
# and go are honoured too.
#
# Fails when: the budget and the reservation are not written in one transaction,
# a trigger on a ledger table is not fired, or a settled reservation is settled
# again.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('half');
my $caller;
my $holder = session($node);

publish($node, subject => '*');
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'made to fail'; END $$;
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(0.03); RETURN coalesce(NEW, OLD); END $$;
SQL

sub books
{
	my ($subject) = @_;

	return $node->safe_psql('postgres', <<"SQL");
SELECT state, available, reserved, spent, minted, burned
FROM limitledger.reservation r JOIN limitledger.head_budget b USING (subject, route)
WHERE subject = '$subject'
SQL
}

sub settle
{
	my ($subject) = @_;

	return "SELECT outcome, state, replayed, actual_units, available FROM limitledger.settle_usage('$subject', 'r1', 'o1', 200)";
}

# fails runs `failure` on a reservation in execution, then settles it in peace.
sub fails
{
	my ($subject, $failure) = @_;

	$caller //= session($node);
	$caller->query_safe("SELECT FROM limitledger.reserve_capacity('$subject', 'chat', 'r1', 600, sha256('d'), start_operation => 'o1')");
	$failure->($subject);
	is(books($subject), 'STARTED|400|600|0|0|0', "$subject: nothing has moved");
	audit_ok($node, "$subject, after the failure");

	$caller //= session($node);
	is($caller->query(settle($subject)), 'ACCEPTED|SETTLED|f|200|800', "$subject: called again, it settles");
	is($caller->query(settle($subject)), 'ACCEPTED|SETTLED|t|200|800', "$subject: and once more, the same receipt");
	is(books($subject), 'SETTLED|800|0|200|0|0', "$subject: 200 were spent once");
	audit_ok($node, "$subject, after the settlement");
}

# expect_error runs settle and asserts what stopped it.
sub expect_error
{
	my ($subject, $pattern) = @_;
	my ($output, $failed) = $caller->query(settle($subject));

	like($caller->{stderr}, $pattern, "$subject: settle fails");
	$caller->{stderr} = '';
}

# while_held runs `body` while another session holds the pair's lock.
sub while_held
{
	my ($subject, $body) = @_;

	$holder->query_safe('BEGIN');
	$holder->query_safe("SELECT FROM limitledger.head_budget WHERE subject = '$subject' FOR UPDATE");
	$body->();
	$holder->query_safe('ROLLBACK');
}

foreach my $setting ('statement_timeout', 'lock_timeout')
{
	fails($setting, sub {
		my ($subject) = @_;
		while_held($subject, sub {
			$caller->query_safe("SET $setting = '30ms'");
			expect_error($subject, qr/timeout/);
			$caller->query_safe("RESET $setting");
		});
	});
}

fails('cancelled while it waits', sub {
	my ($subject) = @_;
	while_held($subject, sub {
		send_query($caller, settle($subject));
		wait_blocked($node, 1);
		$node->safe_psql('postgres',
			"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
		$caller->query('SELECT 1');
		like($caller->{stderr}, qr/canceling statement due to user request/, "$subject: settle fails");
		$caller->{stderr} = '';
	});
});

# Every write of a settlement, before and after it, and the commit.
foreach my $step (
	[ 'BEFORE UPDATE', 'head_budget' ], [ 'AFTER UPDATE', 'head_budget' ],
	[ 'BEFORE UPDATE', 'reservation' ], [ 'AFTER UPDATE', 'reservation' ])
{
	my ($when, $table) = @$step;

	fails(lc "$when $table", sub {
		my ($subject) = @_;
		$node->safe_psql('postgres',
			"CREATE TRIGGER made_to_fail $when ON limitledger.$table FOR EACH ROW EXECUTE FUNCTION fail()");
		expect_error($subject, qr/made to fail/);
		$node->safe_psql('postgres', "DROP TRIGGER made_to_fail ON limitledger.$table");
	});

	fails(lc "cancelled $when $table", sub {
		my ($subject) = @_;
		$node->safe_psql('postgres',
			"CREATE TRIGGER dawdle $when ON limitledger.$table FOR EACH ROW EXECUTE FUNCTION dawdle()");
		send_query($caller, "SET statement_timeout = '10ms';\n" . settle($subject));
		$caller->query('RESET statement_timeout');
		like($caller->{stderr}, qr/canceling statement due to statement timeout/, "$subject: settle fails");
		$caller->{stderr} = '';
		$node->safe_psql('postgres', "DROP TRIGGER dawdle ON limitledger.$table");
	});
}

foreach my $table ('head_budget', 'reservation')
{
	fails("at commit, $table", sub {
		my ($subject) = @_;
		$node->safe_psql('postgres', <<"SQL");
CREATE CONSTRAINT TRIGGER made_to_fail AFTER UPDATE ON limitledger.$table
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()
SQL
		expect_error($subject, qr/made to fail/);
		$node->safe_psql('postgres', "DROP TRIGGER made_to_fail ON limitledger.$table");
	});
}

fails('rolled back', sub {
	my ($subject) = @_;
	$caller->query_safe('BEGIN');
	is($caller->query(settle($subject)), 'ACCEPTED|SETTLED|f|200|800', "$subject: settled inside");
	$caller->query_safe('ROLLBACK');
});

fails('rolled back to a savepoint', sub {
	my ($subject) = @_;
	$caller->query_safe($_) for 'BEGIN', 'SAVEPOINT s';
	is($caller->query(settle($subject)), 'ACCEPTED|SETTLED|f|200|800', "$subject: settled inside");
	$caller->query_safe($_) for 'ROLLBACK TO s', 'COMMIT';
});

fails('the caller is terminated', sub {
	my ($subject) = @_;
	while_held($subject, sub {
		send_query($caller, settle($subject));
		wait_blocked($node, 1);
		$node->safe_psql('postgres',
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
		$caller->{run}->finish;
		undef $caller;
	});
});

fails('the server crashes before the commit', sub {
	my ($subject) = @_;
	$caller->query_safe('BEGIN');
	is($caller->query(settle($subject)), 'ACCEPTED|SETTLED|f|200|800', "$subject: settled inside");
	$node->stop('immediate');
	$caller->{run}->finish;
	$holder->{run}->finish;
	$node->start;
	$holder = session($node);
	undef $caller;
});

$caller->quit;
$holder->quit;
$node->stop;
done_testing();
