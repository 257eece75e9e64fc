# A retry after a partial failure counts again: a list of fifty settlements fails
# at the thirty-seventh.  However it is repeated, each is counted once and later
# runs give the first receipts (D6, J2).
#
# Fails when: a replay books anything, or a batch keeps what it did before it failed.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('list');

publish($node, subject => '*', burst => 10_000, executionTtl => '1 hour');

# Reservation n holds 100 units and uses n of them.
sub prepare
{
	my ($subject) = @_;

	$node->safe_psql('postgres', <<"SQL");
SELECT count(r) FROM generate_series(1, 50) n,
  limitledger.reserve_capacity('$subject', 'chat', 'r' || n, 100, sha256('d'), start_operation => 'o' || n) r
SQL
	is(books($subject), 'STARTED|50|5000|5000|0', "$subject: fifty executions run");
}

sub books
{
	my ($subject) = @_;

	return $node->safe_psql('postgres', <<"SQL");
SELECT string_agg(DISTINCT state, ' '), count(*), min(available), min(reserved), min(spent)
FROM limitledger.reservation r JOIN limitledger.head_budget b USING (subject, route)
WHERE subject = '$subject'
SQL
}

# run_list settles from..to, one statement each, and returns what psql printed.
sub run_list
{
	my ($subject, $begin, $end, @numbers) = @_;
	my ($output, $errors) = ('', '');

	$node->psql('postgres', join("\n", $begin,
			map({ my $actual = $_ == 0 ? 'NULL' : $_; my $n = $_ || 37;
				"SELECT 'r$n', outcome, state, replayed, actual_units FROM limitledger.settle_usage('$subject', 'r$n', 'o$n', $actual);" }
				@numbers), $end),
		stdout => \$output, stderr => \$errors, on_error_stop => 1);
	return ($output, $errors);
}

sub receipts
{
	my ($replayed, @numbers) = @_;

	return join("\n", map { "r$_|ACCEPTED|SETTLED|$replayed|$_" } @numbers);
}

# All in one transaction, an error at r37 (0 stands for a NULL there).
prepare('one transaction');
my ($output, $errors) = run_list('one transaction', 'BEGIN;', 'COMMIT;', 1 .. 36, 0, 38 .. 50);
like($errors, qr/ERROR:  .*actual/, 'one transaction: r37 fails');
is(books('one transaction'), 'STARTED|50|5000|5000|0', 'one transaction: nothing was counted');
audit_ok($node, 'one transaction, rolled back');
foreach my $replayed ('f', 't', 't')
{
	($output) = run_list('one transaction', 'BEGIN;', 'COMMIT;', 1 .. 50);
	is($output, receipts($replayed, 1 .. 50), "one transaction: fifty receipts, replayed: $replayed");
	is(books('one transaction'), 'SETTLED|50|8725|0|1275', 'one transaction: each was counted once');
	audit_ok($node, "one transaction, replayed: $replayed");
}

# Each in its own, stopped after r36.
prepare('one by one');
($output, $errors) = run_list('one by one', '', '', 1 .. 36, 0, 38 .. 50);
like($errors, qr/ERROR:  .*actual/, 'one by one: r37 fails');
is($output, receipts('f', 1 .. 36), 'one by one: 36 receipts');
is(books('one by one'), 'SETTLED STARTED|50|7934|1400|666', 'one by one: 36 were counted');
audit_ok($node, 'one by one, stopped');
($output) = run_list('one by one', '', '', 1 .. 50);
is($output, receipts('t', 1 .. 36) . "\n" . receipts('f', 37 .. 50), 'one by one: the first receipts, then the rest');
($output) = run_list('one by one', '', '', 1 .. 50);
is($output, receipts('t', 1 .. 50), 'one by one: again the first receipts');
is(books('one by one'), 'SETTLED|50|8725|0|1275', 'one by one: each was counted once');
audit_ok($node, 'one by one, run again');

# As one batch call.
prepare('batch');
my $batch = <<'SQL';
SELECT s.outcome, s.replayed, count(*), sum(s.actual_units)
FROM limitledger.settle_usage_batch(
  array_fill('batch'::text, ARRAY[50]), (SELECT array_agg('r' || n ORDER BY n) FROM generate_series(1, 50) n),
  (SELECT array_agg('o' || n ORDER BY n) FROM generate_series(1, 50) n),
  (SELECT array_agg(ACTUAL ORDER BY n) FROM generate_series(1, 50) n)) s
GROUP BY 1, 2
SQL
($output, $errors) = ('', '');
$node->psql('postgres', $batch =~ s/ACTUAL/CASE WHEN n <> 37 THEN n::bigint END/r, stderr => \$errors);
like($errors, qr/ERROR:  .*actual/, 'batch: r37 fails');
is(books('batch'), 'STARTED|50|5000|5000|0', 'batch: nothing was counted');
audit_ok($node, 'batch, failed');
foreach my $replayed ('f', 't', 't')
{
	value_is($node, $batch =~ s/ACTUAL/n::bigint/r, "ACCEPTED|$replayed|50|1275", "batch: fifty receipts, replayed: $replayed");
	is(books('batch'), 'SETTLED|50|8725|0|1275', 'batch: each was counted once');
	audit_ok($node, "batch, replayed: $replayed");
}

$node->stop;
done_testing();
