# What was acknowledged is there: after an immediate stop in the middle of writes, and
# on a synchronous standby that takes over (F4).
#
# Fails when: a call answers before its commit is flushed, or before the synchronous
# standby has it, whatever the session's synchronous_commit says.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

use constant CLIENTS => 4;

my $node = ledger_node('writes', 'wal_level = replica', 'max_wal_senders = 4', 'autovacuum = off');
publish($node, subject => '*', burst => 1_000_000_000);

# writers starts psqls that reserve and settle one after the other and write down
# what was acknowledged.  The id tells the round, the client and the number.
sub writers
{
	my ($round, $extra) = @_;
	my @writers;

	for my $client (1 .. CLIENTS)
	{
		my $path = "$PostgreSQL::Test::Utils::tmp_check/writes-$round-$client";
		my $script = "$extra;\n" . join '', map { my $id = "$round-$client-$_"; <<"SQL" } 1 .. 20_000;
SELECT 'reserved $id' FROM limitledger.reserve_capacity('s' || $_ % 3, 'chat', '$id', 10, sha256('d'), start_operation => '$id') WHERE outcome = 'ACCEPTED';
SELECT 'settled $id' FROM limitledger.settle_usage('s' || $_ % 3, '$id', '$id', $_ % 10) WHERE outcome = 'ACCEPTED';
SQL
		append_to_file("$path.sql", $script);
		push @writers, { out => "$path.out", run => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', "$path.sql" ],
			'<', \undef, '>', "$path.out", '2>', "$path.err") };
	}
	return @writers;
}

# acknowledged lets the writers end and returns what they were told.
sub acknowledged
{
	my @lines;

	for my $writer (@_)
	{
		eval { $writer->{run}->finish };
		push @lines, split /\n/, slurp_file($writer->{out});
	}
	return grep { /^(?:reserved|settled) \S+-\d+$/ } @lines;
}

# missing compares what was acknowledged with what a server holds.
sub missing
{
	my ($on, @lines) = @_;
	my %there = map { $_ => 1 } split /\n/, $on->safe_psql('postgres', <<'SQL');
SELECT 'reserved ' || reservation_id FROM limitledger.reservation WHERE reserved_units = 10
UNION ALL
SELECT 'settled ' || reservation_id FROM limitledger.reservation
WHERE state = 'SETTLED' AND actual_units::text = right(reservation_id, 1)
SQL
	return join ' ', grep { !$there{$_} } @lines;
}

sub written
{
	my ($round, $count) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) >= $count FROM limitledger.reservation WHERE reservation_id LIKE '$round-%' AND state = 'SETTLED'")
	  or die 'nobody writes';
}

for my $round (1 .. 3)
{
	my @writers = writers($round, 'SET synchronous_commit = ' . ($round % 2 ? 'off' : 'on'));
	written($round, 200 * $round);
	$node->stop('immediate');
	my @lines = acknowledged(@writers);
	$node->start;
	cmp_ok(scalar @lines, '>=', 200, "round $round: calls were acknowledged");
	is(missing($node, @lines), '', "round $round: after an immediate stop each of them is there");
	audit_ok($node, "round $round");
	value_is($node, <<"SQL", 't', "round $round: what was not settled is, by the same ids, once");
SELECT coalesce(bool_and(s.outcome = 'ACCEPTED' AND s.actual_units = 7), true)
FROM limitledger.open_reservations r, limitledger.settle_usage(r.subject, r.reservation_id, r.operation_id, 7) s
SQL
}

# ---- a synchronous standby ------------------------------------------------------

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('copy');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = 'copy'));
$node->reload;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'") or die 'no standby';
$node->safe_psql('postgres', 'CREATE TABLE own (n int)');

# waits tells whether a statement waits for the standby while that is away, and what
# a session is told when it is cancelled.
my $session = session($node);
my $holder = session($node);
my $me = $session->query_safe('SELECT pg_backend_pid()');

sub waits
{
	my ($statement) = @_;

	$session->{stderr} = '';
	send_query($session, $statement);
	$node->poll_query_until('postgres', "SELECT state = 'idle' OR wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $me")
	  or die 'neither done nor waiting';
	my $waited = $node->safe_psql('postgres', "SELECT wait_event = 'SyncRep' AND pg_cancel_backend($me) FROM pg_stat_activity WHERE pid = $me");
	$session->query('SELECT 1');
	return $waited eq 't' && $session->{stderr} =~ /WARNING:  canceling wait for synchronous replication/ ? 'waits'
	  : $waited eq 'f' && $session->{stderr} eq '' ? 'does not wait' : "$waited: $session->{stderr}";
}

$standby->stop;
my $reserve = "SELECT outcome FROM limitledger.reserve_capacity('s1', 'chat', '<id>', 10, sha256('d'))";
for my $commit (qw(off local remote_write on))
{
	$session->query_safe("SET synchronous_commit = $commit");
	is(waits('INSERT INTO own VALUES (1)'), $commit =~ /off|local/ ? 'does not wait' : 'waits', "$commit: an insert");
	is(waits($reserve =~ s/<id>/$commit/r), 'waits', "$commit: a reserve waits for the standby");
	is(waits($reserve =~ s/<id>/$commit/r), 'waits', "$commit: so does its replay");
	$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 's1' FOR UPDATE";
	is(waits($reserve =~ s/<id>/$commit/r), 'waits', "$commit: even one that answers while somebody has the pair");
	$holder->query_safe('ROLLBACK');
	is(waits("SELECT state FROM limitledger.get_reservation('s1', '$commit')"), 'does not wait', "$commit: asking for it does not");
	is(waits("SELECT outcome FROM limitledger.start_reservation('s1', '$commit', '$commit')"), 'waits', "$commit: a start waits");
	is(waits("SELECT outcome FROM limitledger.settle_usage('s1', '$commit', '$commit', 10)"), 'waits', "$commit: a settlement waits");
	is(waits("SELECT outcome FROM limitledger.reserve_capacity('s1', 'chat', 'much', 2000000000, sha256('d'))"), 'does not wait',
		"$commit: a refusal does not, since it writes nothing");
}
$session->query_safe($_) for 'SET limitledger.durability_required = off', 'SET synchronous_commit = off';
is(waits($reserve =~ s/<id>/relaxed/r), 'does not wait', 'a superuser may relax it');
$session->query_safe('RESET limitledger.durability_required');
$standby->start;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'") or die 'no standby';
is(waits($reserve =~ s/<id>/on/r), 'does not wait', 'with the standby back, a repeated call is confirmed');
$_->quit for $session, $holder;

# The primary dies in the middle of writes; the standby takes over.
my @writers = writers('sync', 'SET synchronous_commit = off');
written('sync', 200);
$node->stop('immediate');
my @lines = acknowledged(@writers);
$standby->promote;
cmp_ok(scalar @lines, '>=', 200, 'calls were acknowledged before the switch');
is(missing($standby, @lines), '', 'each of them is on the new primary');
is($standby->safe_psql('postgres', 'SELECT * FROM limitledger.verify_conservation()'), '', 'whose books balance');

$standby->stop;
done_testing();
