# An acknowledged call is durable whatever the session's synchronous_commit says,
# unless a superuser relaxes it (F4).
#
# Fails when: the commit of a call is not flushed before it returns.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

# Nobody else flushes: only a commit that insists on it.
my $node = ledger_node('durability', 'wal_writer_delay = 10s', 'wal_writer_flush_after = 0',
	'bgwriter_delay = 10s', 'autovacuum = off', 'checkpoint_timeout = 1h');

publish($node);
$node->safe_psql('postgres', 'CREATE TABLE own (n int)');
my $session = session($node);

# lost runs a statement under synchronous_commit = off and tells whether a crash
# right after it would lose it.
sub lost
{
	my ($statement) = @_;

	$session->query_safe('SET synchronous_commit = on');
	$session->query_safe('INSERT INTO own VALUES (0)');
	$session->query_safe('SET synchronous_commit = off');
	my $before = $session->query_safe('SELECT pg_current_wal_insert_lsn()');
	$session->query_safe($statement);
	my ($wrote, $flushed) = split(/\|/, $session->query_safe(
		"SELECT pg_current_wal_insert_lsn() > '$before', pg_current_wal_flush_lsn() > '$before'"));
	is($wrote, 't', "it writes: $statement");
	return $flushed eq 'f';
}

# losses counts over five runs: the WAL writer may wake up in one of them.
sub losses
{
	my ($statement) = @_;

	return scalar grep { lost($statement =~ s/<n>/$_/gr) } 1 .. 5;
}

my $reserve = "SELECT FROM limitledger.reserve_capacity('t1', 'chat', '<n>', 10, sha256('d'))";

cmp_ok(losses('INSERT INTO own VALUES (<n>)'), '>', 0, 'a plain insert can be lost');
is(losses($reserve), 0, 'a reserve can not');
is(losses("SELECT FROM limitledger.start_reservation('t1', '<n>', 'o<n>')"), 0, 'a start can not');
is(losses("SELECT FROM limitledger.settle_usage('t1', '<n>', 'o<n>', 4)"), 0, 'a settlement can not');
is(losses("SELECT FROM limitledger.resolve_reservation('t1', 'lost <n>', sha256('d'))"), 0, 'a fence can not');

# What was acknowledged is there after a crash.
$session->query_safe("SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'last', 10, sha256('d'))");
$node->stop('immediate');
$session->{run}->finish;
$node->start;
value_is($node, "SELECT outcome, state FROM limitledger.get_reservation('t1', 'last')", 'ACCEPTED|RESERVED', 'after a crash it is there');
value_is($node, "SELECT available, reserved, spent FROM limitledger.get_budget('t1', 'chat')", '970|10|20', 'with its units');
audit_ok($node, 'after the crash');

# A superuser may relax it; anybody else may not.
$session = session($node);
$session->query_safe('SET limitledger.durability_required = off');
cmp_ok(losses("SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'relaxed <n>', 10, sha256('d'))"), '>', 0,
	'relaxed, a reserve can be lost');
$session->query_safe($_) for 'CREATE ROLE plain', 'SET ROLE plain';
$session->query('SET limitledger.durability_required = off');
like($session->{stderr}, qr/ERROR:  permission denied to set parameter/, 'a plain role may not relax it');
$session->{stderr} = '';
$session->query("SET limitledger.clock_override = '2030-01-01T00:00:00Z'");
like($session->{stderr}, qr/ERROR:  permission denied to set parameter/, 'nor replace the clock');
$session->{stderr} = '';

$session->quit;
$node->stop;
done_testing();
