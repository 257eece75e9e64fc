# Retention without bloat (D15): maintain() purges what its policy no longer keeps; in a
# steady state no table and no index grows; a purge under load loses nothing, whether two
# run at once, a dump reads meanwhile, or the server dies in the middle.
#
# Fails when: a purge leaves something behind for ever, or its rows and its sums do not
# come and go together.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = ledger_node('retention', 'autovacuum = off', 'restart_after_crash = on');

steady_state();
under_load();
dump_meanwhile();
crashes();

$node->stop;
done_testing();

# at runs statements with the ledger's clock at an hour of an endless day.
sub at
{
	my ($hour, @statements) = @_;

	return $node->safe_psql('postgres', join("\n",
			"SET limitledger.clock_override = '" . hour($hour) . "';", map { "$_;" } @statements));
}

sub hour
{
	my ($hour) = @_;

	return sprintf '2030-01-%02d %02d:30:00+00', 1 + int($hour / 24), $hour % 24;
}

# steady_state lets the same number of reservations arrive each hour, in windows of an
# hour, and keeps them for five.
sub steady_state
{
	my $rounds = 30;
	my %size;

	publish($node, subject => '*', route => 'steady', refill => { kind => 'window', quota => 100_000 },
		burst => undef, epoch => { length => '1 hour' }, retention => '5 hours');
	for my $round (1 .. $rounds)
	{
		at($round, <<"SQL",
SELECT count(r) FROM (SELECT array_agg('s' || n % 40) AS subjects, array_agg('r$round-' || n) AS ids,
    array_agg('o$round-' || n) FILTER (WHERE n % 4 > 0) AS operations FROM generate_series(1, 400) n) a,
  limitledger.reserve_capacity_batch(a.subjects, array_fill('steady'::text, ARRAY[400]), a.ids, array_fill(10::bigint, ARRAY[400]),
    array_fill(sha256('d'), ARRAY[400]), start_operations => ARRAY(SELECT CASE WHEN n % 4 > 0 THEN 'o$round-' || n END FROM generate_series(1, 400) n)) r
SQL
			"SELECT count(r) FROM generate_series(1, 400) n, limitledger.settle_usage('s' || n % 40, 'r$round-' || n, 'o$round-' || n, 7) r WHERE n % 4 > 0",
			"SELECT count(r) FROM generate_series(1, 400) n, limitledger.release_reservation('s' || n % 40, 'r$round-' || n) r WHERE n % 4 = 0 AND n % 8 = 0",
			"SELECT count(r) FROM generate_series(1, 40) n, limitledger.record_usage('s' || n % 40, 'steady', 'u$round', 3) r",
			"SELECT count(r) FROM generate_series(1, 40) n, limitledger.resolve_reservation('s' || n, 'f$round', sha256('f')) r",
			'CALL limitledger.maintain(batch_limit => 150)',
			'VACUUM limitledger.reservation, limitledger.operation, limitledger.closed_budget, limitledger.head_budget');
		my $sizes = $node->safe_psql('postgres', <<'SQL');
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = 'limitledger'::regnamespace AND relkind IN ('r', 'i') AND pg_relation_size(oid) > 0
SQL
		push @{ $size{ (split /\|/)[0] } }, (split /\|/)[1] for split /\n/, $sizes;
	}

	# one window of holds runs out each hour, and is kept for five more
	value_is($node, q(SELECT count(*) BETWEEN 5 * 440 AND 7 * 440 FROM limitledger.reservation), 't', 'five hours of reservations are stored');
	value_is($node, q(SELECT count(*) BETWEEN 5 * 40 AND 8 * 40 FROM limitledger.closed_budget), 't', 'and as many closed budgets');
	value_is($node, q(SELECT count(*) BETWEEN 5 * 40 AND 7 * 40 FROM limitledger.operation WHERE usage_units IS NOT NULL), 't', 'and usage');
	audit_ok($node, 'after thirty hours');
	for my $relation (sort keys %size)
	{
		my @of = @{ $size{$relation} };
		my ($early, $late) = map { (sort { $b <=> $a } @$_)[0] } [ @of[ 0 .. $#of / 2 ] ], [ @of[ $#of / 2 + 1 .. $#of ] ];
		cmp_ok($late, '<=', $early, "$relation is level: at most $late bytes") or note "@of";
	}
	at(40, 'CALL limitledger.maintain()');
	at(46, 'CALL limitledger.maintain()');
	value_is($node, q(SELECT count(*) FROM limitledger.reservation), '0', 'with nobody calling all of it goes');
	value_is($node, q(SELECT count(*) FROM limitledger.operation), '0', 'and so do operations');
	value_is($node, q(SELECT count(*), count(*) FILTER (WHERE follows_purged) FROM limitledger.closed_budget), '40|40', 'and all closed budgets but those that the heads follow');
	audit_ok($node, 'after all was purged');
}

# under_load: lives on few pairs, and two purges beside them.
sub under_load
{
	my $script = write_script('lives', <<'SQL');
\set pair random(1, 5)
\set round :round + 1
SELECT outcome FROM limitledger.reserve_capacity('l' || :pair, 'load', 'r-' || :client_id || '-' || :round, 10, sha256('d'),
  start_operation => 'o-' || :client_id || '-' || :round) \gset
SELECT outcome FROM limitledger.settle_usage('l' || :pair, 'r-' || :client_id || '-' || :round, 'o-' || :client_id || '-' || :round, 7) \gset
SQL
	my $purge = write_script('purge', "SELECT purged FROM limitledger.purge_reservations(50, 0, NULL);\n");

	publish($node, subject => '*', route => 'load', burst => 1_000_000, retention => '20 milliseconds');
	my @purges = map { bench_start($node, '-T', 4, '-f', $purge) } 1 .. 2;
	my ($code, $output) = bench($node, '-c', 6, '-j', 2, '-T', 3, '-f', $script);
	is($code, 0, 'lives under two purges');
	my ($lives) = $output =~ /number of transactions actually processed: (\d+)/;
	$_->finish for @purges;
	is(join(' ', map { $_->full_results } @purges), '0 0', 'neither purge failed');
	audit_ok($node, 'under load');
	value_is($node, q(SELECT sum(spent), sum(reserved) FROM limitledger.budgets WHERE route = 'load'), 7 * $lives . '|0', 'every life is counted, once');
	value_is($node, q(SELECT sum(purged_spent) > 0 FROM limitledger.budgets WHERE route = 'load'), 't', 'and many were purged meanwhile');
	$node->poll_query_until('postgres', q(SELECT purged = 0 FROM limitledger.purge_reservations(1000, 0, NULL)));
	value_is($node, q(SELECT sum(spent - purged_spent) FROM limitledger.budgets WHERE route = 'load'), '0', 'in the end all were');
	audit_ok($node, 'with nothing but sums left');
}

# store makes settled reservations that are due.
sub store
{
	my ($subject, $count) = @_;

	$node->safe_psql('postgres', <<"SQL");
SELECT count(r) FROM generate_series(1, $count) n, limitledger.reserve_capacity('$subject', 'load', 'r' || n, 10, sha256('d'), start_operation => 'o' || n) r;
SELECT count(r) FROM generate_series(1, $count) n, limitledger.settle_usage('$subject', 'r' || n, 'o' || n, 7) r;
SQL
	$node->poll_query_until('postgres', "SELECT max(ended_at) < clock_timestamp() - interval '20 milliseconds' FROM limitledger.reservation WHERE subject = '$subject'");
}

# dump_meanwhile: a dump that began before a purge and ends after it is one state.
sub dump_meanwhile
{
	my $file = PostgreSQL::Test::Utils::tempdir_short() . '/ledger.dump';
	my $reader = session($node);

	store('dumped', 100);
	my ($snapshot) = $reader->query_until(qr/exported/, <<'SQL') =~ /^([0-9A-F-]+)$/m;
BEGIN ISOLATION LEVEL REPEATABLE READ;
\pset tuples_only on
\pset format unaligned
SELECT pg_export_snapshot();
\echo exported
SQL
	value_is($node, 'SELECT purged, purged_units FROM limitledger.purge_reservations(1000, 0, NULL)', '100|700', 'purged before the dump reads');
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $file, "--snapshot=$snapshot", 'postgres' ], 'a dump of the state before');
	$reader->quit;
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	$node->command_ok([ 'pg_restore', '-d', 'restored', $file ], 'is restored');
	is($node->safe_psql('restored', q(SELECT count(*) FROM limitledger.reservation WHERE subject = 'dumped')), '100', 'with its reservations');
	is($node->safe_psql('restored', 'SELECT * FROM limitledger.verify_conservation()'), '', 'and its sums');
	is($node->safe_psql('restored', 'SELECT purged, purged_units FROM limitledger.purge_reservations(1000, 0, NULL)'), '100|700', 'and can purge them');
	is($node->safe_psql('restored', 'SELECT * FROM limitledger.verify_conservation()'), '', 'in the same sums');
	audit_ok($node, 'where it was dumped');
}

# crashes: in the middle of a step, and right after one.
sub crashes
{
	my $purger = session($node);

	store('crashed', 100);
	$purger->query_until(qr/purged/, "BEGIN;\nSELECT purged FROM limitledger.purge_reservations(40, 0, NULL);\n\\echo purged\n");
	$node->stop('immediate');
	$node->start;
	eval { $purger->quit };
	value_is($node, q(SELECT count(*) FROM limitledger.reservation WHERE subject = 'crashed'), '100', 'a step that did not commit has left nothing');
	audit_ok($node, 'after a crash in a step');
	value_is($node, 'SELECT purged, purged_units FROM limitledger.purge_reservations(40, 0, NULL)', '40|280', 'one that did');
	$node->stop('immediate');
	$node->start;
	value_is($node, q(SELECT count(*) FROM limitledger.reservation WHERE subject = 'crashed'), '60', 'is there after a crash');
	value_is($node, q(SELECT count(*) FROM limitledger.operation WHERE subject = 'crashed'), '60', 'with its operations');
	audit_ok($node, 'after a crash between steps');
	$node->safe_psql('postgres', 'CALL limitledger.maintain()');
	value_is($node, q(SELECT count(*) FROM limitledger.reservation), '0', 'and the next run goes on');
	audit_ok($node, 'at the end');
}
