# Check-then-act admission: three gateways each see enough left and ask for 600
# of the same 1,000 at the same instant.  Exactly one may have them (D2, F1, F5).
#
# Each round is a new subject of a wildcard policy.  In every second one the three
# requests are also the first of their pair (B3); in the others it has a budget.
#
# Fails when: the available units are read before the pair's lock is held, or the
# head is not locked at all; at REPEATABLE READ and SERIALIZABLE, when a row
# version that the snapshot does not show is decided about.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $rounds = 500;
my $node = ledger_node('parallel');

publish($node, subject => '*');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE call (subject text, client int, outcome text, dimension text,
  began_at timestamptz, ended_at timestamptz);
SQL

foreach my $level ('read committed', 'repeatable read', 'serializable')
{
	$node->safe_psql('postgres', <<"SQL");
SELECT count(e), count(r) FROM generate_series(2, $rounds, 2) n,
  limitledger.reserve_capacity('$level ' || n, 'chat', 'before', 600, sha256('d')) e,
  LATERAL limitledger.release_reservation('$level ' || n, CASE WHEN e.outcome = 'ACCEPTED' THEN 'before' END) r
SQL

	# Each keeps its transaction open for a moment, so that the others meet it.
	my $script = write_script('race', race_prelude(0.008, 300) . <<"SQL");
\\set hold random(0, 800)
BEGIN;
INSERT INTO call
SELECT '$level ' || :round, :client_id, r.outcome, r.dimension, statement_timestamp(), clock_timestamp() + :hold * interval '1 microsecond'
FROM limitledger.reserve_capacity('$level ' || :round, 'chat', 'r' || :client_id, 600, sha256('d')) r;
\\sleep :hold us
END;
SQL

	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=' . $level =~ s/ /\\ /r;
	my ($code, $output) =
	  bench($node, '-c', 3, '-j', 3, '-t', $rounds, '-f', $script);
	my $failed = failed_transactions($output);
	delete local $ENV{PGOPTIONS};

	is($code, 0, "$level: every call got an answer or a serialization failure");

	value_is($node, <<"SQL", "$rounds|400|400|600|600", "$level: one budget a subject, 400 available, 600 reserved");
SELECT count(*), min(available), max(available), min(reserved), max(reserved)
FROM limitledger.head_budget WHERE subject LIKE '$level %'
SQL
	value_is($node, <<"SQL", "$rounds|$rounds|RESERVED", "$level: one reservation a subject is stored");
SELECT count(*), count(DISTINCT subject), string_agg(DISTINCT state, ' ')
FROM limitledger.reservation WHERE subject LIKE '$level %' AND reservation_id <> 'before'
SQL
	value_is($node, <<"SQL", "$rounds|" . (2 * $rounds - $failed) . '|0', "$level: one is told yes, the others no");
SELECT count(*) FILTER (WHERE outcome = 'ACCEPTED'),
       count(*) FILTER (WHERE outcome = 'REFUSED' AND dimension = 'available'),
       count(*) FILTER (WHERE outcome NOT IN ('ACCEPTED', 'REFUSED'))
FROM call WHERE subject LIKE '$level %'
SQL

	is($failed, 0, "$level: nobody fails") if $level eq 'read committed';
	cmp_ok($failed + $node->safe_psql('postgres', <<"SQL"), '>=', $rounds / 50, "$level: the calls really met");
SELECT count(*) FROM (
  SELECT FROM call WHERE subject LIKE '$level %'
  GROUP BY subject
  HAVING (array_agg(began_at ORDER BY began_at))[2] < (array_agg(ended_at ORDER BY began_at))[1]) met
SQL
	audit_ok($node, "after $rounds rounds at $level");
}

$node->stop;
done_testing();
