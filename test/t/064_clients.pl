# The recipes of clients/: five drivers live the life of a reservation through
# PgBouncer in transaction mode, while replies are lost, requests are lost, the
# standby does not confirm, calls fail and servers die.  Each prints what the others
# print, and each unit is counted once (D2, D6, D9, D11, F2, F4).  JavaScript reads
# units above 2^53 exactly (A2, J1).
#
# Fails when: a driver's way needs a prepared statement or a session behind the
# pooler, a repeat takes a new id, a lost reply or a WARNING passes for an answer, an
# error that should be repeated is not, or a figure becomes a double.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Proxy;
use Test::More;

chdir "$FindBin::RealBin/../.." or die $!;

my $tmp = PostgreSQL::Test::Utils::tempdir();
my %command = commands();
my @clients = qw(psycopg node go jdbc psql);

my $node = ledger_node('clients', 'wal_level = replica', 'max_wal_senders = 2', 'log_statement = all');
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE app LOGIN;
SELECT limitledger.grant_bundle('app', 'gateway'), limitledger.grant_bundle('app', 'executor');
ALTER DATABASE postgres SET limitledger.clock_override = '2026-07-19 14:00:00+00';
SQL
publish($node, subject => '*', refill => { kind => 'continuous', units => 10, interval => '1 second' });

# As in clients/README.md; and DISCARD ALL after each transaction does what another
# server connection would: nothing is there that the transaction before it has left.
my ($folder, $port) = pooler_start($node, 'app',
	ignore_startup_parameters => 'extra_float_digits',
	server_reset_query => 'DISCARD ALL',
	server_reset_query_always => 1);

# ---- One life of each, and what is lost in it -------------------------------------

# Without a fault. The tries and `replayed` are what a fault changes, beside what is
# left out here: - is NULL.
my @life = (
	[qw(reserve r-1 1 ACCEPTED - RESERVED no 600 - 400 -)],
	[qw(start r-1 1 ACCEPTED - STARTED no 600 - 400 -)],
	[qw(settle r-1 1 ACCEPTED - SETTLED no 600 200 800 -)],
	[qw(reserve r-2 1 ACCEPTED - RESERVED no 300 - 500 -)],
	[qw(resolve r-2 1 ACCEPTED - RESERVED yes 300 - 500 -)],
	[qw(release r-2 1 ACCEPTED - RELEASED no 300 - 800 -)],
	[qw(reserve r-3 1 REFUSED available REQUESTED no - - 800 20)]);

# The first reserve is cut at its COMMIT, the first settle at itself, and so is the
# COMMIT of the reserve that is tried once.
my @cuts = (
	{ after => qr/reserve_capacity/, at => qr/COMMIT/ },
	{ at => qr/settle_usage/ },
	{ after => qr/reserve_capacity/, at => qr/COMMIT/ });

my $lost = changed(0 => { 2 => 2, 6 => 'yes' }, 2 => { 2 => 2, 6 => 'yes' }, 3 => 'no answer');
foreach my $client (@clients)
{
	lives($client, 'nothing is lost', [], \@life);
	lives($client, 'replies are lost', [ map { { %$_, lose => 'reply' } } @cuts ], $lost);
	lives($client, 'requests are lost', [ map { { %$_, lose => 'request' } } @cuts ],
		changed(0 => { 2 => 2 }, 2 => { 2 => 2 }, 3 => 'no answer',
			4 => { 5 => 'RELEASED', 6 => 'no', 7 => 0, 9 => '-' },
			5 => { 6 => 'yes', 7 => 0, 9 => '-' }));
}

idle_and_sound('after lost replies and requests');

# ---- What the server says is not lost, and is no answer either ----------------------

# Errors that are to be repeated, then the server process dies in the middle of a call:
# four times in the reserve, twice in the settlement.
$node->safe_psql('postgres', <<'SQL');
CREATE SEQUENCE fault;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  state text := ('{40001, 40P01, 55P03, dies, NULL, 57014, dies}'::text[])[nextval('fault')];
BEGIN
  IF state = 'dies' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
  IF state IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = 'try again'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER fail_reserve BEFORE INSERT ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION fail();
CREATE TRIGGER fail_settle BEFORE UPDATE ON limitledger.reservation FOR EACH ROW WHEN (NEW.state = 'SETTLED') EXECUTE FUNCTION fail();
SQL
foreach my $client (@clients)
{
	$node->safe_psql('postgres', 'ALTER SEQUENCE fault RESTART');
	lives($client, 'calls fail', [], changed(0 => { 2 => 5 }, 2 => { 2 => 3 }));
}
$node->safe_psql('postgres', 'DROP FUNCTION fail CASCADE');

# A COMMIT that succeeds with WARNING 01000, as when the standby does not confirm it: once
# in an explicit transaction, once in autocommit.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('fault') <= 2 THEN RAISE WARNING USING ERRCODE = '01000', MESSAGE = 'not replicated'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER warn_reserve AFTER INSERT ON limitledger.reservation DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION warn();
CREATE CONSTRAINT TRIGGER warn_settle AFTER UPDATE ON limitledger.reservation DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.state = 'SETTLED') EXECUTE FUNCTION warn();
SQL
my $unconfirmed = changed(0 => { 2 => 2, 6 => 'yes' }, 2 => { 2 => 2, 6 => 'yes' });
foreach my $client (@clients)
{
	$node->safe_psql('postgres', 'ALTER SEQUENCE fault RESTART');
	lives($client, 'a commit is not confirmed', [], $unconfirmed);
}
$node->safe_psql('postgres', 'DROP FUNCTION warn CASCADE');

# The same from a server that waits for a standby in vain.
standby('*');
my ($life, $out) = start_client([ @{ $command{psql} }, 'psql, no standby' ], $folder, $port);
$node->poll_query_until('postgres', q(SELECT count(pg_cancel_backend(pid)) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'))
  or die 'nobody waits for the standby';
$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'))
  or die 'the repeat does not wait for the standby';
standby('');
$life->finish;
is($$out, transcript(changed(0 => { 2 => 2, 6 => 'yes' })), 'psql, there is no standby');
ends_well('psql, no standby');
idle_and_sound('after errors and warnings');

# ---- Which errors: what the documentation says ----------------------------------------

my ($table) = slurp_file('docs/hard-days.md') =~ /^(\| SQLSTATE \|.*?)\n\n/ms;
my %repeat = map { $_ => 1 } $table =~ /^\| (\w{5}) \|/mg;
my %lists;
cmp_ok(scalar keys %repeat, '>', 20, 'the documentation says which errors to repeat');
foreach my $file (map { glob } qw(clients/psycopg/*.py clients/node/life.js clients/go/*.go clients/jdbc/*.java clients/psql/*.sh))
{
	my $text = slurp_file($file);
	my ($listed) = $text =~ /REPEAT\b(.*?)[)}']\s*;?\n/si;
	my @codes = sort { $a cmp $b } $listed =~ /\b(\d\w{4})\b/g;
	cmp_ok(scalar @codes, '>', 8, "$file repeats some");
	is(join(' ', grep { !$repeat{$_} } @codes), '', "$file repeats no other");
	push @{ $lists{"@codes"} }, $file;
}
is(scalar keys %lists, 1, 'all repeat the same') or diag explain \%lists;

# ---- 64-bit units in JavaScript --------------------------------------------------------

publish($node, subject => 'big', burst => 27021597764222979, largestReservation => 9007199254740993);
my $exact = <<'END';
column     string  9007199254740993
sum        bigint  27021597764222979
composite  string  9007199254740993
document   string  9007199254740993
own JSON   string  9007199254740993
error      string  LL103 It is -9007199254740993.
END
my ($code, $printed) = run_client([ @{ $command{node} }[0], 'clients/node/units.js', 'big' ], $folder, $port);
is($printed, $exact, 'units above 2^53 in JavaScript');

# ---- What the page shows -----------------------------------------------------------------

my $page = slurp_file('clients/README.md');
ok(index($page, "```\n$_->[1]```\n") >= 0, "clients/README.md shows $_->[0]")
  for [ 'a life with lost replies', transcript($lost) ], [ 'units in JavaScript', $exact ];

# ---- What they leave in a session: nothing -------------------------------------------------

pooler_stop($folder);
$node->stop;
my $log = slurp_file($node->logfile);
cmp_ok(scalar(() = $log =~ /execute <unnamed>: SELECT/g), '>', 100, 'the log has what the drivers did');
unlike($log, qr/execute (?!<unnamed>)\S+:/, 'no statement is prepared under a name');
unlike($log, qr/execute <unnamed>: SET/, 'and nothing is SET');
done_testing();

# ---- How ---------------------------------------------------------------------------------

# commands builds what has to be built, and returns what to run for each client.
sub commands
{
	my ($java) = glob '/usr/lib/jvm/java-17-openjdk-*/bin';
	my $driver = '/usr/share/java/postgresql.jar';

	-e or die "$_ is not there: tools/setup check" for '/usr/bin/python3', '/usr/bin/node', '/usr/bin/go', "$java/javac", $driver;
	local @ENV{qw(GO111MODULE GOPATH GOCACHE GOFLAGS)} = ('off', '/usr/share/gocode', "$tmp/go-cache", '');
	my $go = IPC::Run::start([ '/usr/bin/go', 'build', '-o', "$tmp/life", 'clients/go/life.go' ], '<', \undef);
	system_or_bail("$java/javac", '-d', "$tmp/classes", 'clients/jdbc/Life.java');
	$go->finish or die 'clients/go/life.go does not compile';
	return (
		psycopg => [ '/usr/bin/python3', 'clients/psycopg/life.py' ],
		node => [ '/usr/bin/node', 'clients/node/life.js' ],
		go => ["$tmp/life"],
		jdbc => [ "$java/java", '-XX:TieredStopAtLevel=1', '-cp', "$tmp/classes:$driver", 'Life' ],
		psql => [ 'bash', 'clients/psql/life.sh' ]);
}

# run_client runs a command as the role app, and returns its status and what it printed.
sub run_client
{
	my ($command, $host, $port) = @_;
	my ($run, $out) = start_client(@_);

	$run->finish;
	return ($run->full_result(0), $$out);
}

sub start_client
{
	my ($command, $host, $port) = @_;
	my $out = '';

	local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE PGSSLMODE NODE_PATH)} =
	  ($host, $port, 'app', 'postgres', 'disable', '/usr/share/nodejs');
	my $run = IPC::Run::start($command, '<', \undef, '>', \$out, '2>&1', IPC::Run::timeout(60));
	return ($run, \$out);
}

# changed returns the life with cells of some lines changed, or with another line.
sub changed
{
	my (%lines) = @_;
	my @rows = map { [@$_] } @life;

	foreach my $line (keys %lines)
	{
		if (ref $lines{$line}) { @{ $rows[$line] }[ keys %{ $lines{$line} } ] = values %{ $lines{$line} } }
		else { $rows[$line] = [ @{ $rows[$line] }[ 0 .. 2 ], $lines{$line} ] }
	}
	return \@rows;
}

# transcript lays rows out as the recipes do.
sub transcript
{
	my ($rows) = @_;
	my $head = [qw(step id tries outcome dimension state replayed reserved actual available retry-after)];

	return join '', map {
		@$_ > 4 ? sprintf("%-8s %-4s %5s  %-9s %-10s %-9s %-8s %8s %6s %9s %11s\n", @$_) : sprintf("%-8s %-4s %5s  %s\n", @$_)
	} $head, @$rows;
}

# lives runs a client as a subject of its own, with a proxy before the pooler that
# makes the cuts, and looks at what it printed and at what the ledger has.
sub lives
{
	my ($client, $what, $cuts, $rows) = @_;
	my $subject = "$client, $what";

	my $proxy = Proxy->start("$folder/.s.PGSQL.$port", "$tmp/cuts", @$cuts);
	my ($code, $printed) = run_client([ @{ $command{$client} }, $subject ], '127.0.0.1', $proxy->port);

	is($code, 0, "$subject: it comes to its end");
	is($printed, transcript($rows), "$subject: it prints what all of them print");
	is($proxy->cuts, join('', map { "$_->{lose}\n" } @$cuts), "$subject: what was to be lost was lost");
	$proxy->stop;
	unlink "$tmp/cuts";
	ends_well($subject);
	return;
}

# ends_well asserts what the ledger has of a life, however often it was asked.
sub ends_well
{
	my ($subject) = @_;

	value_is($node, <<"SQL", '800|0|200|0|{"r-1 SETTLED 200","r-2 RELEASED"}', "$subject: under its ids each unit is counted once");
SELECT available, reserved, spent, debt,
       (SELECT array_agg(concat_ws(' ', reservation_id, state, actual_units) ORDER BY reservation_id) FROM limitledger.reservations WHERE subject = '$subject')
FROM limitledger.get_budget('$subject', 'chat')
SQL
	return;
}

# idle_and_sound asserts that no transaction stays open, and that the books balance.
sub idle_and_sound
{
	my ($when) = @_;

	ok($node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'app' AND state <> 'idle')),
		"no transaction stays open: $when");
	audit_ok($node, $when);
	return;
}

# standby says which standby a commit waits for.
sub standby
{
	my ($names) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'") or die 'no reload';
	return;
}
