# Cached catalogue numbers: DROP EXTENSION and CREATE EXTENSION under the feet of
# a session that has used it.  The session works on the new tables or gets a clear
# error; it never meets a stale number, another table or a crash.
#
# Fails when: an OID, a plan, a policy or a compiled CHECK outlives the extension
# in a backend, or a session writes a table by what it knew of it before somebody
# changed that.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('drop_create');
my $born = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $publish = <<'SQL';
SELECT generation FROM limitledger.publish_policy('{"schema": "admissionBudget.v1", "subject": "t1", "route": "chat",
 "region": "*", "unit": "tokens", "refill": {"kind": "none"}, "burst": CAP, "epoch": {"length": "1 day"},
 "estimatorDigests": [], "largestReservation": 100, "holdTtl": "1 hour", "executionTtl": "1 hour",
 "hardExecutionLimit": 1000, "maximumOverdraft": 500, "priority": 0, "weight": 1, "fairnessBudget": 0,
 "retention": "1 day"}')
SQL
my $reserve = "SELECT outcome, replayed, generation, cap, available FROM limitledger.reserve_capacity('t1', 'chat', 'r1', 100, sha256('d'), start_operation => 'o1')";
my $settle = "SELECT outcome, state, available FROM limitledger.settle_usage('t1', 'r1', 'o1', 40)";

sub life
{
	my ($session, $cap, $name) = @_;

	is($session->query_safe($publish =~ s/CAP/$cap/r), '1', "$name: the first generation is 1");
	is($session->query_safe($reserve), "ACCEPTED|f|1|$cap|" . ($cap - 100), "$name: reserve starts from nothing");
	is($session->query_safe($settle), 'ACCEPTED|SETTLED|' . ($cap - 40), "$name: settle");
	is($session->query_safe('SELECT * FROM limitledger.verify_conservation()'), '', "$name: the books balance");
}

# One session does it all.
my $one = session($node);
life($one, 1000, 'created');
$one->query_safe($_) for 'DROP EXTENSION limitledger', 'CREATE EXTENSION limitledger';
life($one, 2000, 'created again');
$one->query_safe($_) for 'BEGIN', 'DROP EXTENSION limitledger', 'CREATE EXTENSION limitledger';
life($one, 3000, 'created again in a transaction');
$one->query_safe('ROLLBACK');
is($one->query_safe($reserve), 'ACCEPTED|t|1|2000|1960', 'after its rollback the old ledger stands');
$one->query_safe($_) for 'BEGIN', 'DROP EXTENSION limitledger', 'ROLLBACK';
is($one->query_safe($settle), 'ACCEPTED|SETTLED|1960', 'and after a drop that was rolled back');

# In the middle of calls, and undone in the middle.
my $more = $reserve =~ s/'r1', 100(.*), start.*/'r2', 10$1)/r;
$one->query_safe($_) for 'BEGIN', $more, 'SAVEPOINT s', 'DROP EXTENSION limitledger', 'CREATE EXTENSION limitledger', $publish =~ s/CAP/700/r;
is($one->query_safe($more), 'ACCEPTED|f|1|700|690', 'after a call it is created again, and takes the next');
$one->query_safe('ROLLBACK TO s');
is($one->query_safe($more), 'ACCEPTED|t|1|2000|1950', 'that undone, the first call stands');
$one->query_safe('ROLLBACK');
is($one->query_safe($reserve), 'ACCEPTED|t|1|2000|1960', 'and all undone, none of it');

# Another session does it while this one holds prepared statements.
my $two = session($node);
$two->query_safe("PREPARE reserve AS $reserve");
$two->query_safe("PREPARE settle AS $settle");
is($two->query_safe('EXECUTE reserve'), 'ACCEPTED|t|1|2000|1960', 'a prepared reserve');
is($two->query_safe('EXECUTE settle'), 'ACCEPTED|SETTLED|1960', 'a prepared settle');

$one->query_safe('DROP EXTENSION limitledger');
$two->query('EXECUTE reserve');
like($two->{stderr}, qr/ERROR:  (function|schema) .*does not exist/, 'dropped: a clear error');
$two->{stderr} = '';

# Other tables take the freed names' place in the catalogue; nothing may land there.
$one->query_safe('CREATE TABLE bystander AS SELECT 1 AS n');
$one->query_safe('CREATE EXTENSION limitledger');
$two->query('EXECUTE reserve');
unlike($two->{stderr}, qr/could not open relation|cache lookup failed/, 'created, without a policy: no stale number');
is($two->{stderr}, '', 'created, without a policy: no error');
is($two->query_safe('SELECT count(*) FROM limitledger.reservation'), '0', 'created, without a policy: nothing was written');

is($one->query_safe($publish =~ s/CAP/4000/r), '1', 'created by another session: the first generation is 1');
is($two->query_safe('EXECUTE reserve'), 'ACCEPTED|f|1|4000|3900', 'the prepared reserve works on the new tables');
is($two->query_safe('EXECUTE settle'), 'ACCEPTED|SETTLED|3960', 'the prepared settle too');
is($two->query_safe('SELECT count(*) FROM limitledger.reservation'), '1', 'the row is in the new table');
is($two->query_safe('SELECT n FROM bystander'), '1', 'and in no other');

# A generation number comes again with other contents: a cached policy must not survive.
$one->query_safe($_) for 'DROP EXTENSION limitledger', 'CREATE EXTENSION limitledger';
$one->query_safe($publish =~ s/CAP/150/r);
is($two->query_safe('EXECUTE reserve'), 'ACCEPTED|f|1|150|50', 'generation 1 is the new one');
is($two->query_safe("SELECT outcome, dimension FROM limitledger.reserve_capacity('t1', 'chat', 'r2', 51, sha256('d'))"),
	'REFUSED|available', 'with the new cap');

$one->query('ALTER EXTENSION limitledger SET SCHEMA public');
like($one->{stderr}, qr/ERROR:  extension "limitledger" does not support SET SCHEMA/, 'the schema is fixed');
$one->{stderr} = '';

# What somebody adds to a table counts from the next call on or, if that has come
# already and waits for the table, from that one on.
$one->query_safe('CREATE INDEX by_priority ON limitledger.reservation (priority)');
is($two->query_safe($reserve =~ s/'r1', 100(.*), start.*/'r3', 1$1)/r), 'ACCEPTED|f|1|150|49', 'a reserve after CREATE INDEX');
is($one->query_safe('SET enable_seqscan = off; SELECT count(*) FROM limitledger.reservation WHERE priority >= 0'),
	'2', 'its row is in the index');
$one->query_safe('DROP INDEX limitledger.by_priority');
is($two->query_safe($reserve =~ s/'r1', 100(.*), start.*/'r4', 1$1)/r), 'ACCEPTED|f|1|150|48', 'a reserve after DROP INDEX');
$one->query_safe($_) for 'BEGIN', 'ALTER TABLE limitledger.reservation ADD CONSTRAINT even CHECK (reserved_units % 2 = 0) NOT VALID';
send_query($two, $reserve =~ s/'r1', 100(.*), start.*/'r5', 1$1)/r);
wait_blocked($node, 1);
$one->query_safe('COMMIT');
$two->query('SELECT 1');
like($two->{stderr}, qr/ERROR:  new row .* violates check constraint "even"/, 'a reserve during ADD CONSTRAINT meets the constraint');
$two->{stderr} = '';
$one->query_safe('ALTER TABLE limitledger.reservation DROP CONSTRAINT even');
is($two->query_safe($settle), 'ACCEPTED|SETTLED|108', 'a settlement when both are gone');

# Who is in the middle of something is waited for, and who comes too late is told.
my $fourth = $reserve =~ s/'r1', 100(.*), start.*/'r6', 1$1)/r;
$two->query_safe('PREPARE fourth AS ' . $fourth);
$two->query_safe('PREPARE listing AS SELECT count(*) FROM limitledger.open_reservations');
$two->query_safe('CREATE FUNCTION again() RETURNS text LANGUAGE plpgsql AS $$
  DECLARE r record; BEGIN SELECT * INTO r FROM limitledger.get_budget(\'t1\', \'chat\'); RETURN r.cap; END $$');
is($two->query_safe('SELECT again()'), '150', 'a plan inside plpgsql');
is($two->query_safe('EXECUTE listing'), '2', 'a plan over a view');
$two->query_safe($_) for 'BEGIN', 'DECLARE open CURSOR FOR SELECT * FROM limitledger.reservations', 'FETCH open';
$two->query('DROP EXTENSION limitledger');
like($two->{stderr}, qr/ERROR:  cannot DROP .* because it is being used/, 'not under an open cursor');
$two->{stderr} = '';
$two->query_safe($_) for 'ROLLBACK', 'BEGIN', 'EXECUTE fourth';
send_query($one, 'DROP EXTENSION limitledger');
wait_blocked($node, 1);
is($two->query_safe("SELECT outcome FROM limitledger.release_reservation('t1', 'r6')"), 'ACCEPTED', 'who has the tables goes on, while a drop waits');
$two->query_safe('COMMIT');
$one->query_safe($_) for 'SELECT 1', 'CREATE EXTENSION limitledger', $publish =~ s/CAP/160/r;
is($two->query_safe('EXECUTE fourth'), 'ACCEPTED|f|1|160|159', 'after it the prepared reserve works');
is($two->query_safe('SELECT again()'), '160', 'so does the plan inside plpgsql');
is($two->query_safe('EXECUTE listing'), '1', 'and the one over a view');

for my $end (qw(ROLLBACK COMMIT))
{
	$one->query_safe($_) for 'BEGIN', 'DROP EXTENSION limitledger';
	send_query($two, 'EXECUTE fourth');
	wait_blocked($node, 1);
	$one->query_safe($end);
	my $answer = $two->query('SELECT 1');
	if ($end eq 'ROLLBACK')
	{
		like($answer, qr/^ACCEPTED\|t\|1\|160/, 'a call that waited for a drop that was rolled back is answered');
		next;
	}
	like($two->{stderr}, qr/ERROR: .*(?:does not exist|was dropped meanwhile)/, 'one that waited for a drop is told so');
	unlike($two->{stderr}, qr/could not open relation|cache lookup failed/, 'by its name');
	$two->{stderr} = '';
}
$one->query_safe($_) for 'CREATE EXTENSION limitledger', $publish =~ s/CAP/170/r;
is($two->query_safe('EXECUTE fourth'), 'ACCEPTED|f|1|170|169', 'and works again on the next ledger');

# A second database has numbers of its own.
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION limitledger');
my $other = session($node, 'other');
life($other, 5000, 'another database');

audit_ok($node, 'at the end');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $born, 'the server never restarted');

$_->quit for $one, $two, $other;
$node->stop;
done_testing();
