# A refusal that has taken effect: two requests with one id and different bodies
# arrive at the same instant.  One is admitted, the other is told that the id is
# taken, and nothing of the other is deducted (D2).  With equal bodies there is
# one deduction and two equal receipts.
#
# Fails when: the id is looked up before the lock only, or units are taken before
# the reservation row is in.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $rounds = 700;
my $node = ledger_node('same_id');

publish($node, subject => '*', route => $_, burst => 10_000_000) for ('chat', 'embed');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE call (subject text, round int, client int, outcome text, dimension text, replayed boolean,
  units bigint, began_at timestamptz, ended_at timestamptz);
SQL

# race lets two clients send their own version of the same id.
sub race
{
	my ($subject, $route, $units, $digest) = @_;
	my $script = write_script('same_id', race_prelude(0.006, 300) . <<"SQL");
INSERT INTO call
SELECT '$subject', :round, :client_id, r.outcome, r.dimension, r.replayed, $units, statement_timestamp(), clock_timestamp()
FROM limitledger.reserve_capacity('$subject', $route, 'k' || :round, $units, sha256(('body ' || $digest)::bytea)) r;
SQL
	my ($code, $output) = bench($node, '-c', 2, '-j', 2, '-t', $rounds, '-f', $script);

	is($code, 0, "$subject: all calls were answered");
	is(failed_transactions($output), 0, "$subject: none failed");
	value_is($node, <<"SQL", "$rounds|t", "$subject: one reservation an id, and the units of the admitted one only");
SELECT count(*),
       sum(reserved_units) = (SELECT sum(units) FROM call
                              WHERE subject = '$subject' AND outcome = 'ACCEPTED' AND NOT replayed)
       AND sum(reserved_units) = (SELECT sum(reserved) FROM limitledger.head_budget WHERE subject = '$subject')
FROM limitledger.reservation WHERE subject = '$subject'
SQL
	cmp_ok($node->safe_psql('postgres', <<"SQL"), '>=', $rounds / 50, "$subject: the calls really met");
SELECT count(*) FROM (
  SELECT FROM call WHERE subject = '$subject' GROUP BY round HAVING max(began_at) < min(ended_at)) met
SQL
	audit_ok($node, $subject);
}

my $answers = <<'SQL';
SELECT answers, count(*) FROM (
  SELECT string_agg(concat_ws(' ', outcome, dimension, CASE WHEN replayed THEN 'replayed' END), ', '
                    ORDER BY outcome, replayed) AS answers
  FROM call WHERE subject = 'SUBJECT' GROUP BY round) rounds
GROUP BY 1
SQL

race('other body', "'chat'", '300 + 100 * :client_id', ':client_id');
value_is($node, $answers =~ s/SUBJECT/other body/r,
	"ACCEPTED, CONFLICT request|$rounds", 'other body: one admitted, one told that the id is taken');
is( $node->safe_psql('postgres', <<'SQL'), '0', 'other body: the stored request is the admitted one');
SELECT count(*) FROM call c JOIN limitledger.reservation r ON r.subject = c.subject AND r.reservation_id = 'k' || c.round
WHERE c.subject = 'other body' AND c.outcome = 'ACCEPTED'
  AND (r.reserved_units <> c.units OR r.request_digest <> sha256(('body ' || c.client)::bytea))
SQL

race('other digest', "'chat'", '300', ':client_id');
value_is($node, $answers =~ s/SUBJECT/other digest/r,
	"ACCEPTED, CONFLICT request|$rounds", 'other digest: the same units are another request all the same');

race('same body', "'chat'", '300', '0');
value_is($node, $answers =~ s/SUBJECT/same body/r,
	"ACCEPTED, ACCEPTED replayed|$rounds", 'same body: one deduction, two equal receipts');

# Two routes are two locks: the id alone has to keep them apart.
race('two routes', "(ARRAY['chat', 'embed'])[1 + :client_id]", '300', '0');
value_is($node, $answers =~ s/SUBJECT/two routes/r,
	"ACCEPTED, CONFLICT request|$rounds", 'two routes: one admitted, one told that the id is taken');

$node->stop;
done_testing();
