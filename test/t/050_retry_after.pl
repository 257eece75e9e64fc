# An optimistic Retry-After, against the real clock: a caller that waits just as
# long as it was told, with no other traffic, is admitted the first time (D4).
# test/pgtap/retry_after.sql does the same to the microsecond with a frozen clock.
#
# Fails when: the wait is rounded down, counted from the start of the transaction,
# or forgets the debt.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('wait');

# await asks, waits as told, asks again; `spend` says what the admitted one uses.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE waited (subject text, round int, told_ms bigint, kind text, outcome text, dimension text);
CREATE PROCEDURE await(pair text, rounds int, asked bigint, used bigint) LANGUAGE plpgsql AS $$
DECLARE told record; again record;
BEGIN
  FOR round IN 1 .. rounds LOOP
    SELECT * INTO told FROM limitledger.reserve_capacity(pair, 'chat', 'r' || round, asked, sha256('d'));
    COMMIT;
    IF told.outcome = 'REFUSED' THEN
      PERFORM pg_sleep(told.retry_after_ms / 1000.0);
      SELECT * INTO again FROM limitledger.reserve_capacity(pair, 'chat', 'r' || round, asked, sha256('d'));
      INSERT INTO waited VALUES (pair, round, told.retry_after_ms, told.retry_kind, again.outcome, again.dimension);
      COMMIT;
    END IF;
    PERFORM limitledger.start_reservation(pair, 'r' || round, 'o' || round);
    PERFORM limitledger.settle_usage(pair, 'r' || round, 'o' || round, used);
    COMMIT;
  END LOOP;
END $$;
SQL

sub await
{
	my ($subject, $refill, $asked, $used, $rounds, %field) = @_;

	publish($node, subject => $subject, refill => $refill, %field);
	$node->safe_psql('postgres', "CALL await('$subject', $rounds, $asked, $used)");
	value_is($node, <<"SQL", 'ACCEPTED||refill|t', "$subject: always admitted after the wait, which was never zero");
SELECT outcome, dimension, kind, min(told_ms) > 0 FROM waited WHERE subject = '$subject' GROUP BY 1, 2, 3
SQL
	cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM waited WHERE subject = '$subject'"),
		'>=', $rounds / 2, "$subject: it was refused often enough");
	audit_ok($node, $subject);
}

await('20 a second', { kind => 'continuous', units => 20, interval => '1 second' }, 1, 1, 40, burst => 3);
await('700 a minute', { kind => 'continuous', units => 700, interval => '1 minute' }, 3, 3, 10, burst => 3);
await('in debt', { kind => 'continuous', units => 100, interval => '1 second' }, 5, 9, 20, burst => 10);
await('a second', { kind => 'window', quota => 2 }, 2, 2, 4,
	burst => undef, epoch => { length => '1 second' });

$node->stop;
done_testing();
