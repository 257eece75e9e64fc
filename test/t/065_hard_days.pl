# The hard days, as docs/hard-days.md tells them: time-outs, sessions that are ended,
# deadlocks of the caller's own making, a standby that does not answer, a fail-over
# that lost the last calls, usage that ran while the gateway was open, a pooler
# without a free connection.  In each of them the same id leads on (D2, D11, D12, F4).
#
# Fails when: a call that ended in an error leaves something behind or burns its id,
# a replay is trusted that no standby has confirmed, usage of a lost reservation can
# be booked twice or not at all, or the page names an SQLSTATE that is none.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $PAGE = slurp_file("$FindBin::RealBin/../../docs/hard-days.md");
my $node = ledger_node('hard_days', 'wal_level = replica', 'max_wal_senders = 4', "deadlock_timeout = '50ms'");

publish($node, subject => '*');
bounded_waits();
ended_sessions();
idle_holder();
deadlocks();
never_again();
pooler();
unconfirmed_commit();
open_gateway();
failover();
names_of_sqlstates();
done_testing();

# ---- tools ---------------------------------------------------------------------

sub reserve
{
	my ($subject, $id, $more) = @_;

	return "SELECT outcome, state, replayed FROM limitledger.reserve_capacity('$subject', 'chat', '$id', 100, sha256('$id')"
	  . (defined $more ? ", $more)" : ')');
}

# sqlstate runs a statement in a session and returns the SQLSTATE of its error.
sub sqlstate
{
	my ($session, $statement) = @_;
	my ($printed) = $session->query("$statement;\n\\echo :SQLSTATE");

	$session->{stderr} = '';
	return $printed =~ s/.*\n//sr;
}

# answer runs one statement on its own connection, as a gateway does.
sub answer
{
	my ($statement, $server) = @_;

	return ($server // $node)->safe_psql('postgres', $statement);
}

# last_words returns what a session was told that the server has ended: an idle psql
# learns of it with its next statement.
sub last_words
{
	my ($session, $statement) = @_;

	$session->{stdin} .= "$statement;\n" if defined $statement;
	eval { $session->{run}->finish };
	return $session->{stderr};
}

# holder begins a transaction that has the lock of a pair and does not end.
sub holder
{
	my ($subject, $id) = @_;
	my $session = session($node);

	$session->query_safe($_) for '\\set VERBOSITY verbose', 'BEGIN', reserve($subject, $id);
	return $session;
}

sub pid_of
{
	my ($session) = @_;

	return $session->query_safe('SELECT pg_backend_pid()');
}

sub wait_for
{
	my ($condition) = @_;

	$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $condition)") or die "never: $condition";
	return;
}

# ---- one server ------------------------------------------------------------------

sub bounded_waits
{
	answer(reserve('waits', 'w-first'));
	my $holder = holder('waits', 'w-0');
	my $waiter = session($node);

	$waiter->query_safe("SET lock_timeout = '50ms'");
	is(sqlstate($waiter, reserve('waits', 'w-1')), '55P03', 'lock_timeout ends a wait for the pair');
	$waiter->query_safe($_) for 'SET lock_timeout = 0', "SET statement_timeout = '50ms'";
	is(sqlstate($waiter, reserve('waits', 'w-1')), '57014', 'and so does statement_timeout');
	$waiter->query_safe('SET statement_timeout = 0');
	is($waiter->query_safe(reserve('elsewhere', 'e-1')), 'ACCEPTED|RESERVED|f', 'another pair does not wait');
	is(answer("SELECT outcome FROM limitledger.get_reservation('waits', 'w-1')"), 'UNKNOWN', 'nothing is left of either');
	$holder->query_safe('COMMIT');
	is($waiter->query_safe(reserve('waits', 'w-1')), 'ACCEPTED|RESERVED|f', 'the same id works then');
	is($waiter->query_safe(reserve('waits', 'w-1')), 'ACCEPTED|RESERVED|t', 'once');
	value_is($node, "SELECT reserved FROM limitledger.get_budget('waits', 'chat')", '300', 'and took its units once');
	$_->quit for $holder, $waiter;
	return;
}

sub ended_sessions
{
	my $holder = holder('ended', 'k-1');

	answer("SELECT pg_terminate_backend(@{[ pid_of($holder) ]}, 10000)");
	like(last_words($holder, 'SELECT 1'), qr/57P01/, 'a terminated session is told 57P01');
	is(answer("SELECT outcome, state, reserved_units FROM limitledger.resolve_reservation('ended', 'k-1', sha256('k-1'))"),
		'ACCEPTED|RELEASED|0', 'resolve fences what was not committed');
	is(answer(reserve('ended', 'k-1')), 'ACCEPTED|RELEASED|t', 'a late original gets the fence');

	answer(reserve('ended', 'k-2'));    # committed; its reply is the one that is lost
	is(answer("SELECT outcome, state, reserved_units FROM limitledger.resolve_reservation('ended', 'k-2', sha256('k-2'))"),
		'ACCEPTED|RESERVED|100', 'resolve returns the receipt of what was');
	return;
}

sub idle_holder
{
	my $holder = holder('idle', 'i-1');
	my $waiter = session($node);

	send_query($waiter, reserve('idle', 'i-2'));
	wait_blocked($node, 1);
	$holder->query_safe("SET idle_in_transaction_session_timeout = '100ms'");
	is($waiter->query_safe('SELECT 1'), "ACCEPTED|RESERVED|f\n1", 'the pair goes on once its idle holder was ended');
	like(last_words($holder, 'SELECT 1'), qr/25P03/, 'the holder is told 25P03');
	is(answer("SELECT outcome FROM limitledger.get_reservation('idle', 'i-1')"), 'UNKNOWN', 'nothing of it is left');
	$waiter->quit;
	return;
}

# deadlocks: two transactions with several calls, and with a row of the caller's own.
sub deadlocks
{
	my @own = ("UPDATE own SET n = n + 1", reserve('dead-a', 'd-own'));

	answer('CREATE TABLE own AS SELECT 0 AS n');
	crosswise('two pairs', [ reserve('dead-a', 'd-1'), reserve('dead-b', 'd-2') ], [ reserve('dead-b', 'd-3'), reserve('dead-a', 'd-4') ]);
	crosswise('a row of the caller and a pair', [@own], [ reserve('dead-a', 'd-5'), $own[0] ]);
	value_is($node, "SELECT sum(reserved) FROM limitledger.head_budget WHERE subject LIKE 'dead-%'", '600', 'each call was made once');
	return;
}

sub crosswise
{
	my ($name, @calls) = @_;
	my @session = map { session($node) } @calls;

	$session[$_]->query_safe("BEGIN;\n$calls[$_][0]") for 0, 1;
	send_query($session[0], "$calls[0][1];\n\\echo first=:SQLSTATE");
	wait_blocked($node, 1);
	my $second = sqlstate($session[1], $calls[1][1]);
	my ($first) = $session[0]->query_until(qr/first=\w+/, '') =~ /first=(\w+)/;
	$session[0]->{stderr} = '';
	is(join(' ', sort $first, $second), '00000 40P01', "one of two is ended by 40P01: $name");
	$session[$_]->query('COMMIT') for 0, 1;
	my $loser = $first eq '40P01' ? 0 : 1;
	$session[$loser]->{stderr} = '';
	$session[$loser]->query_safe("BEGIN;\n$calls[$loser][0];\n$calls[$loser][1];\nCOMMIT");
	is($session[$loser]->query_safe($calls[$loser][ $calls[$loser][0] =~ /^UPDATE/ ? 1 : 0 ]), 'ACCEPTED|RESERVED|t',
		'and its transaction, repeated with the same ids, is made');
	$_->quit for @session;
	return;
}

# never_again: what no repeat changes.
sub never_again
{
	my $session = session($node);

	$session->query_safe('CREATE ROLE stranger; SET ROLE stranger');
	is(sqlstate($session, reserve('never', 'n-1')), '42501', 'without the bundle: 42501');
	$session->query_safe('RESET ROLE');
	is(sqlstate($session, "SELECT FROM limitledger.reserve_capacity('never', 'chat', 'n-1', 'ten', sha256('n'))"), '22P02', 'no number: 22P02');
	is(sqlstate($session, "SELECT FROM limitledger.reserve_capacity('never', 'chat', 'n-1', 0, sha256('n'))"), 'LL103', 'no unit: LL103');
	$session->quit;
	answer('CREATE ROLE crowd LOGIN CONNECTION LIMIT 0');
	like(($node->psql('postgres', 'SELECT 1', extra_params => [ '-U', 'crowd' ]))[2], qr/too many connections/, '53300 comes before any call');
	return;
}

# pooler: a call that waits for a server connection has not reached the server.
sub pooler
{
	my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $user = getpwuid($<);
	my $server = "host=@{[ $node->host ]} port=@{[ $node->port ]} dbname=postgres user=$user";
	my ($printed, $told) = ('', '');

	append_to_file("$folder/users.txt", qq("$user" ""\n));
	append_to_file("$folder/pgbouncer.ini", <<"INI");
[databases]
postgres = $server
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $folder
auth_type = any
auth_file = $folder/users.txt
pool_mode = transaction
default_pool_size = 1
query_wait_timeout = 1
logfile = $folder/pgbouncer.log
INI
	my $running = IPC::Run::start([ $bouncer, '-q', "$folder/pgbouncer.ini" ], '<', \undef, '>', \my $out, '2>&1');
	my @psql = ('psql', '-XAtq', '-h', $folder, '-p', $port, '-v', 'VERBOSITY=verbose', '-c');
	my $ready = sub { IPC::Run::run([ @psql, 'SELECT 1', 'postgres' ], '<', \undef, '>', \my $o, '2>', \my $e) };

	until ($ready->()) { $running->pumpable or die "no pooler: $out"; usleep(20_000) }
	my ($in, $said) = ('', '');
	my $holder = IPC::Run::start([ @psql[ 0 .. 5 ], 'postgres' ], '<', \$in, '>', \$said, '2>&1', IPC::Run::timeout(60));
	$in .= "BEGIN;\nSELECT 'held';\n";
	$holder->pump until $said =~ /held/;
	IPC::Run::run([ @psql, reserve('pool', 'p-1'), 'postgres' ], '<', \undef, '>', \$printed, '2>', \$told);
	like($told, qr/08P01: query_wait_timeout/, 'query_wait_timeout ends a call that gets no connection');
	is(answer("SELECT outcome FROM limitledger.get_reservation('pool', 'p-1')"), 'UNKNOWN', 'it has not reached the server');
	$in .= "COMMIT;\n\\q\n";
	$holder->finish;
	IPC::Run::run([ @psql, reserve('pool', 'p-1'), 'postgres' ], '<', \undef, '>', \$printed, '2>&1');
	is($printed, "ACCEPTED|RESERVED|f\n", 'and the same id works then');
	$running->signal('INT');
	$running->finish;
	return;
}

# unconfirmed_commit: a synchronous standby that does not answer.
sub unconfirmed_commit
{
	my ($caller, $other) = map { session($node) } 1 .. 2;
	my $waits = sub { wait_for(sprintf "wait_event = 'SyncRep' AND pid = %s", $_[0]) };
	my ($caller_pid, $other_pid) = map { pid_of($_) } $caller, $other;

	$caller->query_safe($_) for '\\set VERBOSITY verbose', "SET statement_timeout = '100ms'";
	$other->query_safe('\\set VERBOSITY verbose');
	answer("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
	$node->reload;
	wait_until_set('absent');

	send_query($caller, reserve('sync', 's-1'));
	$waits->($caller_pid);
	$other->query_safe("SET lock_timeout = '50ms'");
	is(sqlstate($other, reserve('sync', 's-2')), '55P03', 'a commit that waits for the standby keeps its pair');
	wait_for("pid = $caller_pid AND wait_event = 'SyncRep' AND query_start < clock_timestamp() - interval '200 ms'");
	pass('statement_timeout does not bound that wait');
	answer("SELECT pg_cancel_backend($caller_pid)");
	my $first = $caller->query('SELECT 1');
	is($first, "ACCEPTED|RESERVED|f\n1", 'a cancelled wait has committed here');
	like($caller->{stderr}, qr/WARNING:  01000: canceling wait for synchronous replication/, 'and warns with 01000');
	$caller->{stderr} = '';

	is(answer("SELECT state FROM limitledger.get_reservation('sync', 's-1')"), 'RESERVED', 'get_reservation does not wait');
	is($caller->query("SELECT outcome, state FROM limitledger.resolve_reservation('sync', 's-1', sha256('s-1'))"), 'ACCEPTED|RESERVED',
		'resolve writes nothing, so it waits within its statement, until statement_timeout');
	like($caller->{stderr}, qr/WARNING:  01000: canceling wait/, 'and warns that nothing is confirmed');
	$caller->{stderr} = '';
	send_query($caller, reserve('sync', 's-1'));
	$waits->($caller_pid);
	pass('a replay waits for the standby, too');
	$other->query_safe('SET lock_timeout = 0');
	send_query($other, reserve('sync-2', 's-3'));
	$waits->($other_pid);
	answer("SELECT pg_terminate_backend($other_pid, 10000)");
	like(last_words($other), qr/WARNING:  57P01: canceling the wait/, 'a terminated wait warns with 57P01');

	answer('ALTER SYSTEM RESET synchronous_standby_names');
	$node->reload;
	is($caller->query('SELECT 1'), "ACCEPTED|RESERVED|t\n1", 'it is answered once there is nothing to wait for');
	is(answer("SELECT outcome, state FROM limitledger.resolve_reservation('sync-2', 's-3', sha256('s-3'))"),
		'ACCEPTED|RESERVED', 'and so is the one whose session was ended');
	$caller->quit;
	return;
}

sub wait_until_set
{
	my ($names) = @_;

	$node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'") or die 'not reloaded';
	return;
}

# open_gateway: what ran while the gateway let requests pass is booked once, in full.
sub open_gateway
{
	my $book = "SELECT outcome, replayed FROM limitledger.record_usage('open', 'chat', 'o-%s', %s)";
	my $state = "SELECT available, debt, admission FROM limitledger.get_budget('open', 'chat')";

	is(answer(sprintf $book, 1, 900), 'ACCEPTED|f', 'usage that ran while open is booked');
	is(answer(sprintf $book, 1, 900), 'ACCEPTED|t', 'once');
	is(answer(sprintf $book, 2, 400), 'ACCEPTED|f', 'and above what is available');
	is(answer($state), '0|300|suspended', 'as debt');
	is(answer(sprintf $book, 3, 300), 'ACCEPTED|f', 'and above the maximum overdraft');
	is(answer($state), '0|600|frozen', 'which freezes the pair');
	answer("SELECT FROM limitledger.grant_capacity('open', 'chat', 'incident 7', 700, 'our outage')");
	is(answer($state), '100|0|frozen', 'a grant pays, and an operator opens');
	is(answer("SELECT outcome, admission FROM limitledger.unfreeze('open', 'chat', 'our outage')"), 'ACCEPTED|open', 'the pair');

	# A reserve that started at once was committed after all: its operation is bound.
	answer("SELECT FROM limitledger.reserve_capacity('open', 'chat', 'r-9', 50, sha256('r'), start_operation => 'o-9')");
	is(answer("SELECT outcome, dimension FROM limitledger.record_usage('open', 'chat', 'o-9', 40)"), 'CONFLICT|operation_elsewhere',
		'what has a reservation is not recorded beside it');
	is(answer("SELECT outcome, state FROM limitledger.settle_usage('open', 'r-9', 'o-9', 40)"), 'ACCEPTED|SETTLED', 'but settled');
	audit_ok($node, 'after the gateway was open');
	return;
}

# ---- two servers -----------------------------------------------------------------

# failover: an asynchronous standby is promoted that never saw the last calls.
sub failover
{
	my $standby = PostgreSQL::Test::Cluster->new('hard_days_standby');

	publish($node, subject => 'over', holdTtl => '1 hour');
	answer($_) for map { reserve('over', $_) } 'kept', 'begun', 'gone';
	answer("SELECT FROM limitledger.start_reservation('over', 'kept', 'op-kept')");
	$node->backup('base');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "wal_retrieve_retry_interval = '100ms'");
	$standby->start;
	answer("SELECT FROM limitledger.release_reservation('over', 'gone')");
	$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
	my $reader = session($standby);
	is(sqlstate($reader, reserve('over', 'on-standby')), '25006', 'a hot standby answers 25006');
	is($reader->query_safe("SELECT state FROM limitledger.get_reservation('over', 'kept')"), 'STARTED', 'and reads');
	$reader->quit;

	# The standby is cut off; the primary acknowledges more, and is gone.
	answer("ALTER SYSTEM SET primary_conninfo = ''", $standby);
	$standby->reload;
	$standby->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)') or die 'not cut off';
	answer(reserve('over', 'lost', "start_operation => 'op-lost'"));
	answer(reserve('over', 'again', "start_operation => 'op-again'"));
	answer("SELECT FROM limitledger.start_reservation('over', 'begun', 'op-begun')");
	answer("SELECT FROM limitledger.settle_usage('over', 'kept', 'op-kept', 60)");
	$node->stop('immediate');
	$standby->promote;
	after_promotion($standby);
	$standby->stop;
	return;
}

sub after_promotion
{
	my ($server) = @_;
	my $here = sub { answer($_[0], $server) };
	my $record = "SELECT outcome, replayed, actual_units FROM limitledger.record_usage('over', 'chat', 'op-lost', 70)";
	my $session = session($server);

	is($here->("SELECT outcome, state FROM limitledger.settle_usage('over', 'kept', 'op-kept', 60)"), 'ACCEPTED|SETTLED',
		'a lost settlement is made again');
	is(sqlstate($session, "SELECT FROM limitledger.settle_usage('over', 'begun', 'op-begun', 60)"), 'LL301', 'a lost start: settle says LL301');
	is($here->("SELECT outcome, state FROM limitledger.start_reservation('over', 'begun', 'op-begun')"), 'ACCEPTED|STARTED', 'start it again');
	is($here->("SELECT outcome, state FROM limitledger.settle_usage('over', 'begun', 'op-begun', 60)"), 'ACCEPTED|SETTLED', 'and settle');

	is($here->("SELECT outcome, dimension FROM limitledger.settle_usage('over', 'lost', 'op-lost', 70)"), 'UNKNOWN|reservation',
		'a lost reserve: settle says UNKNOWN');
	is($here->("SELECT outcome, dimension FROM limitledger.start_reservation('over', 'lost', 'op-lost')"), 'UNKNOWN|reservation', 'and start');
	is($here->($record), 'ACCEPTED|f|70', 'record_usage books what ran');
	is($here->($record), 'ACCEPTED|t|70', 'once');
	is($here->("SELECT operation_id, usage_units FROM limitledger.unreserved_usage WHERE subject = 'over'"), 'op-lost|70', 'and shows it');
	is($here->("SELECT outcome, state, reserved_units FROM limitledger.resolve_reservation('over', 'lost', sha256('lost'))"),
		'ACCEPTED|RELEASED|0', 'resolve fences the lost id');
	is(sqlstate($session, "SELECT FROM limitledger.settle_usage('over', 'lost', 'op-lost', 70)"), 'LL301', 'a fence is never settled');

	# A gateway repeats a lost reserve, and the execution that ran goes under the new hold.
	is($here->(reserve('over', 'again')), 'ACCEPTED|RESERVED|f', 'a reserve that was lost is admitted anew');
	is(sqlstate($session, "SELECT FROM limitledger.settle_usage('over', 'again', 'op-again', 60)"), 'LL301', 'its start was lost too');
	$here->("SELECT FROM limitledger.start_reservation('over', 'again', 'op-again')");
	is($here->("SELECT outcome, state FROM limitledger.settle_usage('over', 'again', 'op-again', 60)"), 'ACCEPTED|SETTLED',
		'started and settled by its operation');
	is($here->("SELECT pg_last_xact_replay_timestamp() IS NOT NULL"), 't', 'the new primary says up to when it knows');
	is($here->("SELECT spent, reserved, available FROM limitledger.get_budget('over', 'chat')"), '250|0|750', 'all is counted once');
	audit_ok($server, 'after the fail-over');
	$session->quit;
	return;
}

# ---- the page --------------------------------------------------------------------

# names_of_sqlstates compares the table of SQLSTATEs with the server's own list.
sub names_of_sqlstates
{
	chomp(my $share = `"@{[ $ENV{PG_CONFIG} // 'pg_config' ]}" --sharedir`);
	my %name = slurp_file("$share/errcodes.txt") =~ /^(\w{5})[ \t]+[EWS][ \t]+\S+[ \t]+(\w+)/mg;
	my @rows = $PAGE =~ /^\| ([0-9A-Z]{5}) \| (\w+) \|/mg;

	cmp_ok(@rows / 2, '>', 20, 'the page has a table of SQLSTATEs');
	while (my ($code, $named) = splice @rows, 0, 2)
	{
		is($named, $name{$code}, "$code has its name");
	}
	return;
}
