# A hot row: all requests of one subject change one row, its head.  Nearly all of these
# updates stay on their page (heap-only), so the table and its index level off.
# While somebody holds an old snapshot the table grows, as no version can be removed;
# a call does not read through them all the same, and after the snapshot has ended the
# space comes back under the same load (F1, F3).  The same with many subjects.
#
# Fails when: a column that calls change is indexed, or a lookup begins with the oldest
# version.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use List::Util qw(max min sum);
use Test::More;
use Time::HiRes qw(time usleep);

use constant KB => 1024;

my $node = ledger_node('hot', 'autovacuum_naptime = 1s', 'log_statement = none');

publish($node, subject => '*', refill => { kind => 'continuous', units => 1000, interval => '1 millisecond' },
	burst => 1_000_000_000, holdTtl => '1 hour', executionTtl => '1 hour');

# life is a reservation from reserve to settlement; `subject` is an SQL expression.
sub life
{
	my ($name, $subject) = @_;
	my $id = "'$name-' || :client_id || '-' || :round";

	return write_script($name, <<"SQL");
\\set round :round + 1
\\set n random(1, 1000)
SELECT outcome FROM limitledger.reserve_capacity($subject, 'chat', $id, 5, sha256('d'));
SELECT outcome FROM limitledger.start_reservation($subject, $id, 'o' || $id);
SELECT outcome FROM limitledger.settle_usage($subject, $id, 'o' || $id, 3);
SQL
}

# sizes reads the bytes of the heads and of their key.
sub sizes
{
	my ($table, $key) = split /\|/, $node->safe_psql('postgres',
		"SELECT pg_relation_size('limitledger.head_budget'), pg_relation_size('limitledger.head_budget_pkey')");

	return { table => $table, key => $key };
}

# counts reads what the server has counted: updates of heads, and how they were found.
sub counts
{
	my %count;

	@count{qw(updates hot scans read)} = split /\|/, $node->safe_psql('postgres', <<'SQL');
SELECT t.n_tup_upd, t.n_tup_hot_upd, i.idx_scan, i.idx_tup_read
FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
WHERE i.indexrelname = 'head_budget_pkey'
SQL
	return \%count;
}

# watch runs a load for some seconds; returns the peaks of both halves, and what was counted.
sub watch
{
	my ($clients, $seconds, $script) = @_;
	my ($before, $start) = (counts(), sizes()->{table});
	my $load = bench_start($node, '-c', $clients, '-j', 2, '-T', $seconds, '-f', $script);
	my $began = time();
	my @peaks = ({ table => 0, key => 0 }, { table => 0, key => 0 });

	while (time() < $began + $seconds)
	{
		my $peak = $peaks[ time() > $began + $seconds / 2 ? 1 : 0 ];
		my $now = sizes();
		$peak->{$_} = max($peak->{$_}, $now->{$_}) for keys %$now;
		usleep(100_000);
	}
	$load->finish or die 'a call was not answered';
	my $after = counts();
	return (@peaks, { start => $start, map { $_ => $after->{$_} - $before->{$_} } keys %$after });
}

# levels_off asserts what a steady load must leave alone.  How large the table gets before
# its pages are cleaned depends on when the clients run; without that it would grow by every
# version, of `version` bytes each.  On a slow machine those are few, so new rows count too.
sub levels_off
{
	my ($name, $first, $second, $count, $version) = @_;
	my $share = $count->{hot} / $count->{updates};
	my $peak = max($first->{table}, $second->{table});
	my $all = $count->{updates} * $version;

	cmp_ok($share, '>=', 0.9, sprintf('%s: %.1f %% of %d updates are heap-only', $name, 100 * $share, $count->{updates}));
	cmp_ok($peak, '<=', $count->{start} + $all / 2 + 512 * KB, sprintf('%s: the table levels off (%d kB of %d kB that were written)', $name, $peak / KB, $all / KB));
	cmp_ok($second->{key}, '<=', 2 * $first->{key} + 512 * KB,
		sprintf('%s: the key levels off (%d kB, then %d kB)', $name, $first->{key} / KB, $second->{key} / KB));
	note sprintf('%s: %.2f entries read a lookup', $name, $count->{read} / $count->{scans});
	return;
}

# One subject.
my $one = life('one', "'t1'");
my ($first, $second, $count) = watch(32, 8, $one);
my $steady = max($first->{table}, $second->{table});
my @shares = split /\n/, $node->safe_psql('postgres',
	"SELECT count(*) FROM limitledger.reservation GROUP BY split_part(reservation_id, '-', 2)");
is(scalar @shares, 32, 'one subject: every client got its turn');
cmp_ok(min(@shares), '>=', sum(@shares) / @shares / 4,
	sprintf('one subject: none waited much longer than others (%d to %d turns)', min(@shares), max(@shares)));

# The same with an old snapshot, which goes away in the middle.
my $reader = session($node);
my $more = life('more', "'t1'");
my $before = counts();

$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query_safe('SELECT count(*) FROM limitledger.head_budget');
bench($node, '-c', 16, '-j', 2, '-T', 6, '-f', $more);
my $after = counts();
my $grown = sizes();
my ($scans, $read, $updates) = map { $after->{$_} - $before->{$_} } qw(scans read updates);
my $version = $grown->{table} / $updates;
cmp_ok($grown->{table}, '>', $steady, sprintf('an old snapshot keeps all versions (%d kB)', $grown->{table} / KB));
cmp_ok($read / $scans, '<', 20, sprintf('of which a lookup reads the newest (%.1f entries of the key)', $read / $scans));
levels_off('one subject', $first, $second, $count, $version);

$reader->query_safe('COMMIT');
my $last = life('last', "'t1'");
my $load = bench_start($node, '-c', 16, '-j', 2, '-T', 60, '-f', $last);
my $until = time() + 45;
usleep(200_000) until sizes()->{table} <= $steady + 256 * KB || time() > $until;
cmp_ok(sizes()->{table}, '<=', $steady + 512 * KB, sprintf('after it the space comes back, under the same load (in %.1f s)', 45 - $until + time()));
$load->kill_kill;
$reader->quit;

# Many subjects.
($first, $second, $count) = watch(16, 8, life('many', "'many-' || :n"));
levels_off('1000 subjects', $first, $second, $count, $version);
audit_ok($node, 'at the end');

$node->stop;
done_testing();
