# Killed at any instant: a load of reserves, starts, settlements, releases, expiries,
# extensions, records of usage and grants, and round after round something dies under it:
# a backend or a worker by SIGKILL, the postmaster by SIGKILL or by an immediate
# stop.  After each round every acknowledged call is there with its figures, none
# has happened twice, a call whose answer was lost took effect wholly or not at all
# and says so when it is repeated, and the books balance.  At the end all is finished,
# replayed by its id, and what the budgets say is the sum of what clients were
# told (C1, C2, D1, D2, D5, D6, D9, D11 to D14, F4).
#
# The sessions run with synchronous_commit off, so that only the ledger itself
# makes an answer durable (F4).  The last rounds relax that, and show that the auditor
# sees what is lost then.
#
# Fails when: an answer comes before its commit is flushed, a repeated call is done
# again, or a call writes the reservation and the budget in two transactions.
#
#   LIMITLEDGER_ROUNDS   how many (200)
#   LIMITLEDGER_SEED     of the run, as printed; instants still differ

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Auditor;
use IPC::Run ();
use Limitledger;
use List::Util qw(sum);
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

use constant SESSIONS => 7;
use constant LIMIT => 60;         # seconds for anything to come back

my $rounds = $ENV{LIMITLEDGER_ROUNDS} // 200;
my $seed = $ENV{LIMITLEDGER_SEED} // int(rand(2**31));
my $folder = $PostgreSQL::Test::Utils::tmp_check;
my $node = ledger_node('kill', 'restart_after_crash = on', "shared_preload_libraries = 'limitledger'",
	'wal_level = replica', 'max_wal_senders = 1', 'shared_buffers = 16MB', 'wal_writer_delay = 10s',
	'max_wal_size = 64MB', 'log_statement = none');
my (%killed, $calls, $log, $postmaster);

srand($seed);
note "$rounds rounds of seed $seed: LIMITLEDGER_SEED=$seed LIMITLEDGER_ROUNDS=$rounds repeats them";

# --- the server -------------------------------------------------------------------

# ask returns what one psql prints, or undef if the server is not there.
sub ask
{
	my ($sql) = @_;
	my ($status, $stdout, $stderr) = eval { $node->psql('postgres', $sql) };

	return defined $status && $status == 0 && $stderr eq '' ? $stdout : undef;
}

# insist asks until there is an answer.
sub insist
{
	my ($sql) = @_;
	my $until = time() + LIMIT;

	while (time() < $until)
	{
		# The last backend of a killed postmaster may have been in the way.
		start_postmaster() if waitpid($postmaster, WNOHANG) != 0;
		my $answer = ask($sql);
		return $answer if defined $answer;
		usleep(20_000);
	}
	die "no answer in @{[ LIMIT ]} s: $sql\n";
}

sub start_postmaster { $postmaster = postmaster_start($node) }

sub end_postmaster
{
	my ($signal) = @_;

	postmaster_end($postmaster, $signal);
	undef $postmaster;
	return;
}

# --- the load -----------------------------------------------------------------------

# load starts the clients, and opens their log.
sub load
{
	my $path = "$folder/load.log";
	my $conninfo = $node->connstr('postgres') . " application_name=load options='-c synchronous_commit=off'";
	my ($in, $out) = ('', '');
	my $client = IPC::Run::start([ "$folder/097_kill", $conninfo, SESSIONS, $seed, $path ],
		'<', \$in, '>', \$out, IPC::Run::timeout(800));
	my $until = time() + LIMIT;

	usleep(10_000) while !-e $path && time() < $until;
	open($log, '<', $path) or die "$path: $!";
	return { in => \$in, out => \$out, run => $client };
}

# say_to gives the clients a command.
sub say_to
{
	my ($load, $command) = @_;

	${ $load->{in} } .= "$command\n";
	$load->{run}->pump_nb;
	return;
}

# hear returns the rest of their next line, which must begin with a word; undef if none
# comes within the given seconds.
sub hear
{
	my ($load, $word, $patience) = @_;
	my $until = time() + ($patience // 1e6);

	until (${ $load->{out} } =~ /\n/)
	{
		return if time() > $until;
		$load->{run}->pump_nb;
		usleep(1000);
	}
	${ $load->{out} } =~ s/^$word ?(.*)\n// or die "the clients said: ${ $load->{out} }";
	return $1;
}

# one_round lets the clients work for a while, kills something, and audits what is left.
sub one_round
{
	my ($load, $auditor, $number) = @_;

	say_to($load, 'round');
	my @backends = split / /, hear($load, 'ready');
	usleep(20_000 + rand(120_000));
	publish_brief(200 + $number % 7) if $number % 10 == 5;
	my $held = $number % 5 == 3 && hold_answers();
	my $victim = strike(\@backends);
	$killed{$victim}++;
	my $answered = hear($load, 'broken', 10);
	if (!defined $answered)
	{
		# A worker that was about to leave is nothing to break by.
		$killed{$victim}--;
		$killed{backend} += kill('KILL', $backends[0]);
		$answered = hear($load, 'broken');
	}
	$calls += $answered;
	start_postmaster() if !$postmaster;
	insist('SELECT pg_reload_conf()') if $held;
	return look($auditor, $number % 25 == 0);
}

# hold_answers lets calls commit and keeps the answers back: they wait for a standby
# that is not there.  So it is sure that some take effect and are never answered.
sub hold_answers
{
	return ask(<<'SQL');
ALTER SYSTEM SET synchronous_standby_names = 'nobody';
SELECT pg_reload_conf();
SELECT pg_sleep(0.03);
ALTER SYSTEM RESET synchronous_standby_names;
SQL
}

# worker returns (pid, type) of a worker if there are any: of the launcher if it is asked
# for, else of one of those that it starts, which may take a moment after a crash.
sub worker
{
	my ($launcher) = @_;
	my $until = time() + 2;
	my @found;

	do
	{
		@found = map { [ split /\|/ ] } split /\n/, ask(<<'SQL') // '';
SELECT pid, backend_type FROM pg_stat_activity WHERE backend_type ^@ 'limitledger' ORDER BY random()
SQL
		@found = sort { ($a->[1] =~ /launcher/) <=> ($b->[1] =~ /launcher/) } @found;
	} while (@found && !$launcher && $found[0][1] =~ /launcher/ && time() < $until && usleep(10_000));
	return @found ? @{ $found[ $launcher ? -1 : 0 ] } : ();
}

# strike kills something, and returns what it was.
sub strike
{
	my ($backends) = @_;
	my $dice = rand;

	if ($dice < 0.2)
	{
		end_postmaster('QUIT');
		return 'immediate stop';
	}
	if ($dice < 0.4)
	{
		end_postmaster('KILL');
		return 'postmaster';
	}
	if ($dice < 0.65)
	{
		my ($pid, $type) = worker($dice < 0.45);
		return $type if defined $pid && kill('KILL', $pid);
	}
	kill 'KILL', $backends->[ rand @$backends ];
	return 'backend';
}

# look lets the auditor read what clients were told since, and then the tables.
sub look
{
	my ($auditor, $all) = @_;

	seek $log, 0, 1;
	while (my $line = <$log>) { chomp $line; $auditor->told($line) }
	return $auditor->audit(insist($auditor->query($all)), $all);
}

# unexpected returns the lines of the server's log that no killing explains.
sub unexpected
{
	my @lines = split /\n/, slurp_file($node->logfile);
	my $killed = grep { /was terminated by signal 9/ } @lines;
	my $meant = sum(map { /postmaster|stop/ ? 0 : $killed{$_} } keys %killed) // 0;

	return ((grep { /PANIC:|TRAP:|terminated by signal (?!9\b)|ERROR:(?!  canceling autovacuum task)/ } @lines),
		$killed == $meant ? () : "$killed processes were killed, $meant were meant");
}

sub publish_brief
{
	my ($burst) = @_;

	publish($node, subject => '*', route => 'brief', refill => { kind => 'continuous', units => 4, interval => '1 millisecond' },
		burst => $burst, holdTtl => '150 milliseconds', executionTtl => '200 milliseconds',
		epoch => { length => '365 days' }, maximumOverdraft => 1_000_000_000, largestReservation => 100);
	return;
}

# --- replay -------------------------------------------------------------------------

# replay asks everything once more, by its id, and returns the answers that differ.
sub replay
{
	my ($auditor) = @_;
	my $file = "$folder/told.tsv";

	open(my $out, '>', $file) or die "$file: $!";
	print $out join("\t", @$_), "\n" for $auditor->told_rows;
	close($out);
	return $node->safe_psql('postgres', <<"SQL");
CREATE TEMP TABLE told (kind text, subject text, route text, id text, operation text, units bigint, state text, held bigint, actual bigint);
\\copy told FROM '$file' (NULL '')
CREATE TEMP TABLE item AS
SELECT *, row_number() OVER () AS n, sha256(convert_to(id, 'UTF8')) AS digest FROM told WHERE kind = 'item';
CREATE TEMP TABLE settled AS SELECT *, row_number() OVER () AS m FROM item WHERE actual IS NOT NULL;

SELECT 'reserve', i.subject, i.id, a.outcome, a.replayed, a.state, a.reserved_units, a.actual_units
FROM (SELECT array_agg(subject ORDER BY n) s, array_agg(route ORDER BY n) r, array_agg(id ORDER BY n) i,
             array_agg(units ORDER BY n) u, array_agg(digest ORDER BY n) d FROM item) q,
     limitledger.reserve_capacity_batch(q.s, q.r, q.i, q.u, q.d) a JOIN item i ON i.n = a.element
WHERE (a.outcome, a.replayed, a.state, a.reserved_units, coalesce(a.actual_units, -1), coalesce(a.operation, ''))
   <> ('ACCEPTED', true, i.state, i.held, coalesce(i.actual, -1), coalesce(i.operation, ''));

SELECT 'settle', i.subject, i.id, a.outcome, a.replayed, a.state, a.actual_units
FROM (SELECT array_agg(subject ORDER BY m) s, array_agg(id ORDER BY m) i,
             array_agg(operation ORDER BY m) o, array_agg(actual ORDER BY m) u FROM settled) q,
     limitledger.settle_usage_batch(q.s, q.i, q.o, q.u) a JOIN settled i ON i.m = a.element
WHERE (a.outcome, a.replayed, a.state, a.actual_units) <> ('ACCEPTED', true, i.state, i.actual);

SELECT 'start', i.subject, i.id, a.outcome, a.replayed, a.state
FROM settled i, limitledger.start_reservation(i.subject, i.id, i.operation) a
WHERE (a.outcome, a.replayed, a.state) <> ('ACCEPTED', true, i.state);

SELECT 'release', i.subject, i.id, a.outcome, a.replayed, a.state
FROM item i, limitledger.release_reservation(i.subject, i.id) a
WHERE i.state = 'RELEASED' AND (a.outcome, a.replayed, a.state) <> ('ACCEPTED', true, 'RELEASED');

SELECT 'extend', t.subject, t.id, a.outcome, a.replayed
FROM told t, limitledger.extend_reservation(t.subject, t.id, t.operation, t.units) a
WHERE t.kind = 'extension' AND (a.outcome, a.replayed) <> ('ACCEPTED', true);

SELECT 'record', t.subject, t.operation, a.outcome, a.replayed
FROM told t, limitledger.record_usage(t.subject, t.route, t.operation, t.units) a
WHERE t.kind = 'usage' AND (a.outcome, a.replayed) <> ('ACCEPTED', true);

SELECT 'grant', t.subject, t.operation, a.outcome, a.replayed, a.granted_units
FROM told t, limitledger.grant_capacity(t.subject, t.route, t.operation, t.units, 'once more') a
WHERE t.kind = 'grant' AND (a.outcome, a.replayed, a.granted_units) <> ('ACCEPTED', true, t.held);
SQL
}

# --- the test -----------------------------------------------------------------------

my $config = $ENV{PG_CONFIG} // '/usr/lib/postgresql/15/bin/pg_config';
chomp(my ($include, $lib) = (`$config --includedir`, `$config --libdir`));
system(split(' ', $ENV{CC} // 'cc'), '-O2', '-Wall', '-Wextra', $ENV{CI} ? '-Werror' : (), '-o', "$folder/097_kill",
	"$FindBin::RealBin/097_kill.c", "-I$include", "-L$lib", '-lpq', '-lpthread') == 0
  or BAIL_OUT('the clients do not compile');

publish($node, subject => '*', route => 'steady', burst => 10_000_000, holdTtl => '1 hour', executionTtl => '1 hour',
	epoch => { length => '365 days' }, maximumOverdraft => 1_000_000_000, largestReservation => 100);
publish_brief(200);

$node->stop;
start_postmaster();

my $auditor = Auditor->new;
my $load = load();
my $began = time();
my @wrong;
my $number = 0;

@wrong = one_round($load, $auditor, $number) while !@wrong && $number++ < $rounds;
ok(!@wrong, "$rounds rounds: all that was acknowledged is there, and nothing twice");
note sprintf('%.0f s; %d calls, %d answers; %s; lost answers: %d had taken effect, %d had not', time() - $began, $calls,
	$auditor->{told}, join(', ', map { "$_ $killed{$_}" } sort keys %killed), @{$auditor}{qw(replays redone)});
if (@wrong)
{
	splice @wrong, 20 if @wrong > 20;
	diag("round $number of seed $seed, ", join(', ', map { "$_ $killed{$_}" } sort keys %killed), map { "\n  $_" } @wrong);
	done_testing();
	exit 1;
}
is(join("\n", unexpected()), '', 'nothing died but what was killed, and nothing failed');

say_to($load, 'finish');
hear($load, 'finished');
usleep(50_000) until $node->safe_psql('postgres', <<'SQL') =~ /^0$/m;
CALL limitledger.maintain() \g /dev/null
SELECT count(*) FROM limitledger.reservation WHERE state IN ('RESERVED', 'EXPIRING', 'STARTED', 'USAGE_UNKNOWN')
SQL
is(join("\n", look($auditor, 1)), '', 'all is finished, and each sum is what clients were told');
is(replay($auditor), '', 'all is replayed by its id');
is(join("\n", look($auditor, 1)), '', 'which changed nothing');

# What the auditor is worth: once commits need not be flushed, it sees what is lost.
$node->safe_psql('postgres', 'ALTER SYSTEM SET limitledger.durability_required = off');
end_postmaster('INT');
start_postmaster();
insist('SELECT 1');
my $relaxed = 0;
@wrong = one_round($load, $auditor, ++$number) while !@wrong && $relaxed++ < 20;
isnt(scalar @wrong, 0, 'with durability relaxed, the auditor misses what was acknowledged');
note sprintf('in round %d: %s', $relaxed, join('; ', @wrong[ 0 .. ($#wrong < 4 ? $#wrong : 4) ]));

end_postmaster('INT');
done_testing();
