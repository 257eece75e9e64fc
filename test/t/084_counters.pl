# The counters of answers, in shared memory: what concurrent clients were told, element by
# element, is what decision_counters shows, per database and since the server started (D3, I1).
#
# Fails when: an answer is counted twice, not at all, or under another name; a rollback
# takes its count with it; two databases share a count; a restart keeps it; pg_monitor
# sees nothing, or more than totals.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $shown = q(SELECT call, outcome, dimension, replayed, answers FROM limitledger.decision_counters);
my $node = ledger_node('counters', "shared_preload_libraries = 'limitledger'", 'fsync = off');

value_is($node, $shown, '', 'at first nothing was answered');
my $since = $node->safe_psql('postgres', q(SELECT pg_postmaster_start_time()));
publish($node, subject => '*', burst => 40, hardExecutionLimit => 1000);
value_is($node, $shown, '', 'a publication is no answer');

# ---- Many clients ----------------------------------------------------------------
# Each keeps what it was told in a table, in the transaction that asked; one call in each
# transaction, so that nothing ever has to be repeated.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE told (call text, outcome text, dimension text, replayed boolean);
CREATE PROCEDURE one(n bigint) LANGUAGE plpgsql AS $$
DECLARE
  s CONSTANT text := 't' || n % 8;
  r CONSTANT text := 'r' || n / 2;             -- every id comes twice
BEGIN
  INSERT INTO told SELECT 'reserve_capacity', outcome, dimension, replayed FROM limitledger.reserve_capacity(s, 'chat', r, 1 + n % 9, sha256('x')); COMMIT;
  INSERT INTO told SELECT 'start_reservation', outcome, dimension, replayed FROM limitledger.start_reservation(s, r, 'o' || r); COMMIT;
  IF n % 3 = 0 THEN
    INSERT INTO told SELECT 'release_reservation', outcome, dimension, replayed FROM limitledger.release_reservation(s, r); COMMIT;
    INSERT INTO told SELECT 'report_progress', outcome, dimension, replayed FROM limitledger.report_progress(s, r, 'o' || r, n % 5); COMMIT;
    INSERT INTO told SELECT 'report_usage_unknown', outcome, dimension, replayed FROM limitledger.report_usage_unknown(s, r, 'o' || r); COMMIT;
    INSERT INTO told SELECT 'extend_reservation', outcome, dimension, replayed FROM limitledger.extend_reservation(s, r, 'e', 1); COMMIT;
  END IF;
  INSERT INTO told SELECT 'settle_usage', outcome, dimension, replayed FROM limitledger.settle_usage_batch(
    ARRAY[s, s, 'nobody'], ARRAY[r, r, r], ARRAY['o' || r, 'o' || r, 'o' || r], ARRAY[1, n % 2, 1]); COMMIT;
  INSERT INTO told SELECT 'reserve_capacity', outcome, dimension, replayed FROM limitledger.reserve_capacity_batch(
    ARRAY[s, s, 't0', 'nobody'], ARRAY['chat', 'chat', 'chat', 'nowhere'], ARRAY['b' || n, 'b' || n, 'c' || n, 'd'],
    ARRAY[1, 1, 41, 1]::bigint[], array_fill(sha256('x'), ARRAY[4])); COMMIT;
  INSERT INTO told SELECT 'release_reservation', outcome, dimension, replayed FROM limitledger.release_reservation(s, 'b' || n); COMMIT;
  INSERT INTO told SELECT 'record_usage', outcome, dimension, replayed FROM limitledger.record_usage(s, 'chat', 'u' || n / 4, 0); COMMIT;
  INSERT INTO told SELECT 'resolve_reservation', outcome, dimension, replayed FROM limitledger.resolve_reservation(s, 'f' || n / 2, sha256('x')); COMMIT;
  PERFORM limitledger.get_reservation(s, r), limitledger.get_budget(s, 'chat');    -- readers are not counted
END $$;
CREATE SEQUENCE n;
SQL
my $script = write_script('one', "CALL one(nextval('n'));\n");
my ($code, $output) = bench($node, '--client=6', '--jobs=2', '--transactions=60', '--file', $script);
is($code, 0, 'six clients, 60 rounds each');

my $told = $node->safe_psql('postgres', q(SELECT call, outcome, dimension, replayed, count(*) FROM told GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3 NULLS FIRST, 4));
cmp_ok(scalar(split /\n/, $told), '>', 15, 'they were told many things');
value_is($node, $shown, $told, 'the counters say what the clients were told');

# ---- What counts ------------------------------------------------------------------
# counts runs statements and returns how the counters have grown.
my %before;

sub counts
{
	my ($database, @statements) = @_;
	my %now;

	$node->psql($database, $_) for @statements;
	$now{ $_->[0] } = $_->[1] for map { [ /^(.*)\|(\d+)$/ ] } split /\n/, $node->safe_psql($database,
		q(SELECT concat_ws(' ', call, outcome, dimension, CASE WHEN replayed THEN 'replayed' END), answers FROM limitledger.decision_counters));
	my $grown = join ', ', map { my $by = $now{$_} - ($before{$database}{$_} // 0); $by ? "$_ $by" : () } sort keys %now;
	$before{$database} = \%now;
	return $grown;
}

counts('postgres');
my $reserve = q(SELECT FROM limitledger.reserve_capacity('own', 'chat', '%s', %d, sha256('x')));
is(counts('postgres', "BEGIN; @{[sprintf $reserve, 'gone', 1]}; ROLLBACK"), 'reserve_capacity ACCEPTED 1', 'an answer that was given counts, also if it is rolled back');
is(counts('postgres', sprintf $reserve, 'gone', 1), 'reserve_capacity ACCEPTED 1', 'and so does the next one');
is(counts('postgres', sprintf $reserve, 'gone', 1), 'reserve_capacity ACCEPTED replayed 1', 'a replay counts apart');
is(counts('postgres', sprintf $reserve, 'gone', 2), 'reserve_capacity CONFLICT request 1', 'a conflict by its dimension');
is(counts('postgres', sprintf $reserve, 'much', 41), 'reserve_capacity REFUSED largest_reservation 1', 'a refusal too');
is(counts('postgres', sprintf $reserve, '', 1), '', 'an error is no answer');
is(counts('postgres', q(SELECT FROM limitledger.settle_usage('own', 'gone', 'o', 1))), '', 'nor is it one to settle what was not started');
is(counts('postgres', q(SELECT FROM limitledger.settle_usage_batch('{own}', '{gone}', '{o}', '{1}'))), 'settle_usage REFUSED not_started 1', 'but for an element of a batch');
is(counts('postgres', q(SELECT FROM limitledger.release_reservation_batch('{own,own,own}', '{gone,gone,none}'))),
	'release_reservation ACCEPTED 1, release_reservation ACCEPTED replayed 1, release_reservation UNKNOWN reservation 1', 'each element by itself');
is(counts('postgres', q(SELECT FROM limitledger.freeze('own', 'chat', 'x')), q(SELECT FROM limitledger.unfreeze('own', 'chat', 'x')),
		q(SELECT FROM limitledger.grant_capacity('own', 'chat', 'g', 1, 'x')), q(SELECT FROM limitledger.repay_debt('none', 'chat'))),
	'freeze ACCEPTED 1, grant_capacity ACCEPTED 1, repay_debt UNKNOWN pair 1, unfreeze ACCEPTED 1', 'what operators call, too');
is(counts('postgres', q(SELECT FROM limitledger.get_reservation('own', 'gone'))), '', 'readers are not counted');
audit_ok($node, 'and counting wrote nothing into them');

# ---- Per database -------------------------------------------------------------------
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION limitledger');
is(counts('other'), '', 'another database begins with nothing');
is(counts('other', q(SELECT FROM limitledger.release_reservation('t', 'r'))), 'release_reservation UNKNOWN reservation 1', 'and counts for itself');
is(counts('postgres'), '', 'not for the others');
$node->safe_psql('other', 'DROP EXTENSION limitledger; CREATE EXTENSION limitledger');
is(counts('other'), '', 'it goes on when the extension is created anew');

# There is room for 32 databases.  A later one is not counted, until one of them is dropped.
sub another
{
	my ($name) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE other");
	return counts($name, q(SELECT FROM limitledger.release_reservation('t', 'r')));
}

is(join(' ', map { another("d$_") =~ / 1$/ ? () : $_ } 3 .. 32), '', '32 databases are counted');
is(another('late'), '', 'the next one is not, and no call fails for it');
$node->safe_psql('postgres', 'DROP DATABASE d17');
is(counts('late', q(SELECT FROM limitledger.release_reservation('t', 'r'))), 'release_reservation UNKNOWN reservation 1', 'a dropped one leaves it its place');
is(join(' ', map { counts($_) } 'postgres', 'other', 'd3', 'd32'), '   ', 'and the others keep theirs');

# ---- Who sees them -----------------------------------------------------------------
$node->safe_psql('postgres', q(CREATE ROLE agent LOGIN IN ROLE pg_monitor; CREATE ROLE nobody LOGIN));

sub as_role
{
	my ($role, $query) = @_;
	my ($code, $out, $err) = $node->psql('postgres', $query, connstr => $node->connstr('postgres') . " user=$role");

	return $code == 0 ? $out : $err =~ /permission denied/ ? 'denied' : $err;
}

isnt(as_role('agent', 'SELECT sum(answers) FROM limitledger.decision_counters'), 'denied', 'pg_monitor reads the counters');
is(as_role('agent', 'SELECT pairs_in_debt FROM limitledger.ledger_totals'), $node->safe_psql('postgres', 'SELECT pairs_in_debt FROM limitledger.ledger_totals'), 'and the totals');
isnt(as_role('agent', 'SELECT count(*) FROM limitledger.rollout_totals'), 'denied', 'and how generations stand');
is(as_role('agent', "SELECT count(*) FROM limitledger.$_"), 'denied', "but not $_")
  for qw(rollout_status reservations budgets unknown_usage pairs_in_debt frozen_pairs unknown_usage_convergence policies reservation head_budget);
is(as_role('agent', q(SELECT * FROM limitledger.get_reservation('own', 'gone'))), 'denied', 'nor calls anything');
is(as_role('nobody', 'SELECT count(*) FROM limitledger.decision_counters'), 'denied', 'others see nothing');

# ---- Restart ------------------------------------------------------------------------
value_is($node, "SELECT count(DISTINCT since) = 1 AND abs(extract(epoch FROM min(since) - timestamptz '$since')) < 60 FROM limitledger.decision_counters", 't',
	'they count since the start of the server');
my $first = $node->safe_psql('postgres', 'SELECT max(since) FROM limitledger.decision_counters');
$node->restart;
value_is($node, $shown, '', 'a restart begins anew');
$node->safe_psql('postgres', q(SELECT FROM limitledger.release_reservation('t', 'r')));
value_is($node, $shown, 'release_reservation|UNKNOWN|reservation|f|1', 'and counts');
value_is($node, "SELECT since > '$first' FROM limitledger.decision_counters", 't', 'from then on');

# ---- Not preloaded --------------------------------------------------------------------
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
$node->safe_psql('postgres', q(SELECT FROM limitledger.release_reservation('t', 'r')));
value_is($node, $shown, '', 'without preload there is nothing, and no error');
value_is($node, q(SELECT count(*) FROM limitledger.ledger_totals), '1', 'totals need none');
audit_ok($node, 'at the end');

$node->stop;
done_testing();
