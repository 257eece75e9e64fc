# A sweeper that acts on a stale choice: 10,000 holds are started, and others
# released, right at their due instant, while two sweepers claim what is due.
# Each id ends in exactly one state, a start that was told yes is never expired,
# and units come back at most once (D5, D9, D14).
#
# Fails when: the sweeper acts on rows that it chose before it locked them, when
# two sweepers may claim one row, or when start does not look at expires_at.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $clients = 8;
my $node = ledger_node('expiry', 'deadlock_timeout = 100ms');

publish($node, subject => '*', burst => 1_000_000, holdTtl => '5 milliseconds', executionTtl => '1 hour');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE call (subject text, id text, outcome text, dimension text, state text);
CREATE TABLE sweep (claimed bigint, expired bigint, expired_units bigint);
SQL

# contest runs one subject's holds against two sweepers; `last` is the contested call.
sub contest
{
	my ($subject, $last, $good, $total) = @_;
	my $rounds = $total / $clients;
	my $id = "'r-' || :client_id || '-' || :round";
	my $holds = write_script('holds', <<"SQL");
\\set round :round + 1
SELECT outcome FROM limitledger.reserve_capacity('$subject', 'chat', $id, 5, sha256('d'));
\\set wait random(2500, 5500)
\\sleep :wait us
INSERT INTO call SELECT '$subject', $id, r.outcome, r.dimension, r.state FROM $last r;
SQL
	my $sweep = write_script('sweep',
		"INSERT INTO sweep SELECT * FROM limitledger.expire_reservations(100);\n");
	my $audit = write_script('audit',
		"SELECT 1 / (NOT EXISTS (SELECT FROM limitledger.verify_conservation()))::int;\n\\sleep 20 ms\n");

	$node->safe_psql('postgres', 'TRUNCATE sweep');
	my $sweepers = bench_start($node, '-c', 2, '-j', 1, '-T', 300, '-f', $sweep);
	my $auditor = bench_start($node, '-c', 1, '-T', 300, '-f', $audit);
	my ($code, $output) = bench($node, '-c', $clients, '-j', 2, '-t', $rounds, '-f', $holds);
	is($code, 0, "$subject: all calls were answered");
	ok($sweepers->pumpable, "$subject: no sweeper stopped");
	ok($auditor->pumpable, "$subject: the books balanced all the while");
	$_->kill_kill for $sweepers, $auditor;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'bench'")
	  or die 'the sweepers did not end';
	$node->safe_psql('postgres', 'INSERT INTO sweep SELECT * FROM limitledger.expire_reservations(100000)');

	value_is($node, <<"SQL", $total, "$subject: each id is stored once, $good or EXPIRED");
SELECT count(*) FROM limitledger.reservation WHERE subject = '$subject' AND state IN ('$good', 'EXPIRED')
SQL
	value_is($node, <<"SQL", '0', "$subject: what was told yes is $good, what was told no is EXPIRED");
SELECT count(*) FROM call c JOIN limitledger.reservation r ON (r.subject, r.reservation_id) = (c.subject, c.id)
WHERE c.subject = '$subject'
  AND (c.outcome, coalesce(c.dimension, ''), r.state)
      NOT IN (('ACCEPTED', '', '$good'), ('REFUSED', 'expired', 'EXPIRED'))
SQL
	value_is($node, <<"SQL", '0', "$subject: nothing started at its deadline or after it");
SELECT count(*) FROM limitledger.reservation
WHERE subject = '$subject' AND started_at >= reserved_at + interval '5 milliseconds'
SQL
	value_is($node, <<"SQL", 't|t|t', "$subject: no sweeper reported an id that another one had");
SELECT sum(s.claimed) = r.n, sum(s.expired) = r.n, sum(s.expired_units) = 5 * r.n
FROM sweep s, (SELECT count(*) AS n FROM limitledger.reservation WHERE subject = '$subject' AND state = 'EXPIRED') r
GROUP BY r.n
SQL
	value_is($node, <<"SQL", 't', "$subject: units came back once");
SELECT (available, reserved) = (opening - held, held)
FROM limitledger.head_budget b,
     (SELECT coalesce(sum(reserved_units) FILTER (WHERE state = 'STARTED'), 0) AS held
      FROM limitledger.reservation WHERE subject = '$subject') r
WHERE subject = '$subject'
SQL
	my $met = $node->safe_psql('postgres',
		"SELECT count(*) FROM limitledger.reservation WHERE subject = '$subject' AND state = 'EXPIRED'");
	cmp_ok($met, '>', $total / 50, "$subject: many were late ($met of $total)");
	cmp_ok($met, '<', $total - $total / 50, "$subject: many were in time");
	audit_ok($node, $subject);
}

my $id = "'r-' || :client_id || '-' || :round";
contest('start', "limitledger.start_reservation('start', $id, 'o' || $id)", 'STARTED', 10_000);
contest('release', "limitledger.release_reservation('release', $id)", 'RELEASED', 2_000);

$node->stop;
done_testing();
