# A gateway whose server is killed in the middle of spending: the next boot ends what
# the one before held, every unit is accounted for, and what was acknowledged is there
# (G1, G4, G5, F4).  A copy of its database spends nothing.
#
# Fails when: a boot loses, spends or leaves open what an earlier one held, two first
# calls begin two boots, or an acknowledged call is gone.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant { CLIENTS => 4, UNITS => 1_000_000, ROUNDS => 3 };

# wal_writer_delay: nothing but a commit that waits for it flushes what it wrote
my $witness = PostgreSQL::Test::Utils::tempdir('witness') . '/witness';
my $node = ledger_node('gateway', 'autovacuum = off', 'wal_writer_delay = 10s', "limitledger.witness_file = '$witness'");
my $fence = 0;
$node->safe_psql('postgres', q(SELECT limitledger.acknowledge_recovery('first set-up'); SELECT limitledger.open_gateway('gw')));

# accepted puts shards on the gateway, as if their envelopes had been opened.
sub accepted
{
	my ($database, @shards) = @_;

	for (@shards)
	{
		my ($subject, $shard) = @$_;
		$fence++;
		$node->safe_psql($database, sprintf <<"SQL", UNITS, UNITS, $fence);
SELECT limitledger.open_gateway('gw');
INSERT INTO limitledger.local_shard (subject, shard_id, route, generation, epoch, boot_epoch, fence, allocated_units,
  largest_reservation, hard_execution_limit, hold_ttl, execution_ttl, issued_at, expires_at, accepted_at, local_available, seen_at)
SELECT '$subject', '$shard', 'chat', 1, now(), boot_epoch, %3\$d, %1\$d, 1000, 1000, '1 hour', '1 hour', now(), now() + interval '1 day', now(), %2\$d, now()
FROM limitledger.local_gateway;
UPDATE limitledger.local_gateway SET last_fence = %3\$d;
SQL
	}
	return;
}

sub boot
{
	return $node->safe_psql($_[0] // 'postgres', 'SELECT boot_epoch FROM limitledger.local_gateway');
}

# shards shows the figures of all shards of a subject, summed.
sub shards
{
	my ($database, $subject) = @_;

	return $node->safe_psql($database, <<"SQL");
SELECT sum(allocated_units), sum(local_available), sum(local_reserved), sum(local_spent), sum(local_retired), sum(local_excess), string_agg(DISTINCT sealed_by, ' ')
FROM limitledger.local_shard WHERE subject = '$subject'
SQL
}

# spenders starts psqls that reserve, start, settle and release, and write down what was
# acknowledged.  Every fourth reservation is left as it is, every fourth is only started.
sub spenders
{
	my ($round) = @_;
	my @spenders;

	for my $client (1 .. CLIENTS)
	{
		my $path = "$PostgreSQL::Test::Utils::tmp_check/spend-$round-$client";
		my $script = "SET synchronous_commit = off;\n" . join '', map {
			my $id = "$round-$client-$_";
			my $call = ('', 'shard_start', 'shard_settle', 'shard_release')[ $_ % 4 ];
			my $first = $_ % 4 == 2 ? ", start_operation => '$id'" : '';
			my $last = ('', ", '$id'", ", '$id', 7", '')[ $_ % 4 ];
			"SELECT 'reserved $id' FROM limitledger.shard_reserve('round $round', 'chat', '$id', 10, sha256('d')$first) WHERE outcome = 'ACCEPTED';\n"
			  . ($call && "SELECT state || ' $id' FROM limitledger.$call('round $round', '$id'$last) WHERE outcome = 'ACCEPTED';\n")
		} 1 .. 20_000;
		append_to_file("$path.sql", $script);
		push @spenders, { out => "$path.out", run => IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', "$path.sql" ],
			'<', \undef, '>', "$path.out", '2>', "$path.err") };
	}
	return @spenders;
}

# acknowledged lets them end and returns what they were told last of each reservation.
sub acknowledged
{
	my %told;

	for my $spender (@_)
	{
		eval { $spender->{run}->finish };
		for my $line (split /\n/, slurp_file($spender->{out}))
		{
			$told{$2} = $1 if $line =~ /^(reserved|STARTED|SETTLED|RELEASED) (\S+-\d+-\d+)$/;
		}
	}
	return %told;
}

my $postmaster;
sub start_again
{
	$postmaster = postmaster_start($node);
	for (1 .. 1200)
	{
		return if IPC::Run::run([ 'pg_isready', '-q', '-h', $node->host, '-p', $node->port ], '<', \undef);
		usleep(50_000);
	}
	die 'the server does not start';
}

sub end_server { postmaster_end($postmaster, $_[0]) }

$node->stop;
start_again();

for my $round (1 .. ROUNDS)
{
	my $subject = "round $round";
	accepted('postgres', [ $subject, "a$round" ], [ $subject, "b$round" ]);
	my $before = boot();
	my @spenders = spenders($round);
	$node->poll_query_until('postgres', "SELECT count(*) >= 200 * $round FROM limitledger.shard_reservation WHERE subject = '$subject'")
	  or die 'nobody spends';
	end_server('KILL');
	my %told = acknowledged(@spenders);
	start_again();
	cmp_ok(scalar keys %told, '>=', 200, "round $round: calls were acknowledged");
	is(boot(), $before, 'a start alone is no boot');

	# Two that both come first: one of them begins it, in a transaction that the other waits for.
	my ($one, $two) = (session($node), session($node));
	$one->query_safe('BEGIN');
	is($one->query_safe("SELECT dimension FROM limitledger.shard_reserve('$subject', 'chat', 'late-1', 1, sha256('d'))"), 'sealed', 'the first call after it spends nothing');
	my $begun = $one->query_safe('SELECT boot_epoch FROM limitledger.local_gateway');
	send_query($two, "SELECT dimension FROM limitledger.shard_reserve('$subject', 'chat', 'late-2', 1, sha256('d'))");
	wait_blocked($node, 1);
	$one->query_safe($round == 2 ? 'ROLLBACK' : 'COMMIT');
	like($two->query('SELECT 1'), qr/sealed/, 'nor does the second, which waited for it');
	$_->quit for $one, $two;
	isnt(boot(), $before, 'the boot is another one');
	is(boot() eq $begun ? 'stands' : 'was begun anew', $round == 2 ? 'was begun anew' : 'stands', 'and what the first session began ' . ($round == 2 ? 'went with it' : 'stands'));
	value_is($node, "SELECT count(*) FROM (SELECT DISTINCT boot_epoch FROM limitledger.local_shard UNION SELECT boot_epoch FROM limitledger.local_gateway) b",
		$round + 1, 'and only one was begun');

	# What was acknowledged is there; what was open is unknown; every unit is somewhere.
	my %there = map { split /=/ } split /\n/, $node->safe_psql('postgres', "SELECT reservation_id || '=' || state FROM limitledger.shard_reservation WHERE subject = '$subject'");
	my %becomes = (reserved => 'USAGE_UNKNOWN|SETTLED|RELEASED', STARTED => 'USAGE_UNKNOWN', SETTLED => 'SETTLED', RELEASED => 'RELEASED');
	is(join(' ', grep { ($there{$_} // 'gone') !~ /^(?:$becomes{$told{$_}})$/ } sort keys %told), '', 'each acknowledged call is there');
	is(join(' ', grep { $there{$_} !~ /^(?:USAGE_UNKNOWN|SETTLED|RELEASED)$/ } sort keys %there), '', 'and nothing is open but as unknown');
	like(shards('postgres', $subject), qr/^2000000\|0\|[1-9]\d*\|[1-9]\d*\|[1-9]\d*\|0\|boot$/, 'the shards of the boot before are sealed');
	audit_ok($node, "round $round, after the boot");

	# Receipts come: of some with what they used, of others that they never ran.
	value_is($node, <<"SQL", 't', 'each unknown item is settled, once');
SELECT bool_and(s.outcome = 'ACCEPTED' AND s.state = 'SETTLED' AND NOT s.replayed)
FROM limitledger.shard_reservations r,
  limitledger.shard_settle(r.subject, r.reservation_id, coalesce(r.operation_id, 'late ' || r.reservation_id), CASE WHEN r.operation_id IS NULL THEN 0 ELSE 9 END) s
WHERE r.subject = '$subject' AND r.state = 'USAGE_UNKNOWN'
SQL
	my $used = $node->safe_psql('postgres', "SELECT sum(actual_units) FROM limitledger.shard_reservation WHERE subject = '$subject'");
	is(shards('postgres', $subject), join('|', 2 * UNITS, 0, 0, $used, 2 * UNITS - $used, 0, 'boot'), 'no unit is lost, and none is there twice');
	for my $shard ("a$round", "b$round")
	{
		my ($cut, $more) = (0, 't');
		while ($more eq 't')
		{
			(my ($outcome, $sequence), $more) = split /\|/, $node->safe_psql('postgres', "SELECT outcome, sequence, more FROM limitledger.cut_shard_report('$subject', '$shard')");
			die "report $sequence: $outcome" unless $outcome eq 'ACCEPTED' && $sequence == ++$cut;
		}
		value_is($node, <<"SQL", 't', "$cut reports account for all that $shard has spent");
SELECT coalesce((SELECT sum(r.actual_units) FROM limitledger.shard_reservation r
                 WHERE (r.subject, r.shard_id) = (p.subject, p.shard_id) AND r.sequence IS NOT NULL), 0) = p.local_spent
FROM limitledger.local_report p WHERE p.subject = '$subject' AND p.shard_id = '$shard' AND p.sequence = $cut
SQL
	}
	audit_ok($node, "round $round, at its end");
}

# ---- What SQL functions wrote is as durable as a call (F4) ------------------------

accepted('postgres', [ 'durable', 'd' ]);
my $sequence = $node->safe_psql('postgres', "SET synchronous_commit = off; SELECT sequence FROM limitledger.cut_shard_report('durable', 'd')");
end_server('QUIT');
start_again();
value_is($node, "SELECT sequence FROM limitledger.local_reports WHERE subject = 'durable'", $sequence, 'a report that was cut is there after an immediate stop');

# ---- Only what is committed is signed (G8) -----------------------------------------

# What is in the envelope is a matter of other tests.
my $key = PostgreSQL::Test::Utils::tempdir() . '/signing.key';
system("$FindBin::RealBin/../../tools/make-signing-key", $key, 'gw-1') == 0 or die 'no key was made';
$node->safe_psql('postgres', "ALTER DATABASE postgres SET limitledger.signing_key_file = '$key'");
my $REPORT = q(SELECT sequence, outcome, dimension, kid, envelope <> '' FROM limitledger.report_shard('durable', 'd'));
value_is($node, $REPORT, "$sequence|ACCEPTED||gw-1|t", 'a report is signed');
value_is($node, $REPORT =~ s/'d'/'d', 1/r, '1|ACCEPTED||gw-1|t', 'also by its number');
value_is($node, $REPORT =~ s/'d'/'d', 9/r, '9|REFUSED|not_committed||', 'one that was never cut is not');
is($node->safe_psql('postgres', "BEGIN; SELECT FROM limitledger.seal_shard('durable', 'd'); SELECT sequence FROM limitledger.cut_shard_report('durable', 'd');"
	  . "SAVEPOINT s; $REPORT; @{[$REPORT =~ s/'d'/'d', 2/r]}; COMMIT; $REPORT") =~ s/^\n+//r,
	"2\n1|ACCEPTED||gw-1|t\n2|REFUSED|not_committed||\n2|ACCEPTED||gw-1|t",
	'nor is what the transaction has cut itself, until it has committed');

# ---- What can't be reported is not taken, in a database that is not UTF-8 either -----

$node->safe_psql('template1', "CREATE DATABASE $_->[0] ENCODING '$_->[1]' LOCALE 'C' TEMPLATE template0") for [ 'latin', 'LATIN1' ], [ 'bytes', 'SQL_ASCII' ];
$node->safe_psql($_, 'CREATE EXTENSION limitledger') for 'latin', 'bytes';
accepted($_, [ 'other', "of $_" ]) for 'latin', 'bytes';
my %text = (latin => q(repeat(chr(233), 200)), bytes => q(E'\\xe9'));
for my $encoding (sort keys %text)
{
	my $call = sub { $node->psql($encoding, "SELECT state FROM limitledger.$_[0]", on_error_stop => 1, stdout => \my $out, stderr => \my $error); return $out || $error };
	my $refused = qr/bytes in UTF-8|invalid byte sequence for encoding "UTF8"/;
	like($call->("shard_reserve('other', 'chat', $text{$encoding}, 1, sha256('d'))"), $refused, "$encoding: an id that no report can carry is refused");
	like($call->("shard_reserve('other', 'chat', 'r', 1, sha256('d'), start_operation => $text{$encoding})"), $refused, 'and an operation, at once');
	is($call->("shard_reserve('other', 'chat', 'r', 1, sha256('d'))"), 'RESERVED', 'one that fits is not');
	like($call->("shard_start('other', 'r', $text{$encoding})"), $refused, 'or at its start');
	like($call->("shard_settle('other', 'r', $text{$encoding}, 1)"), $refused, 'or its end');
}

# ---- A copy is another boot --------------------------------------------------------

$node->safe_psql('postgres', q(SELECT limitledger.renew_boot('after the stop')));
accepted('postgres', [ 'copied', 'c' ]);
$node->safe_psql('postgres', q(SELECT limitledger.shard_reserve('copied', 'chat', 'r', 10, sha256('r'), start_operation => 'o')));
$node->safe_psql('template1', 'CREATE DATABASE twin TEMPLATE postgres');
my $dump = $node->backup_dir . '/gateway.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'the gateway is dumped');
$node->safe_psql('template1', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'and restored beside it');
for my $copy ('twin', 'restored')
{
	is(boot($copy), boot(), "$copy: it has the same boot");
	is($node->safe_psql($copy, q(SELECT dimension FROM limitledger.shard_reserve('copied', 'chat', 'new', 1, sha256('d')))), 'sealed', 'but spends nothing of it');
	isnt(boot($copy), boot(), 'it is another one now');
	is($node->safe_psql($copy, q(SELECT * FROM limitledger.verify_conservation())), '', 'and its books balance');
}
value_is($node, q(SELECT outcome FROM limitledger.shard_reserve('copied', 'chat', 'new', 1, sha256('d'))), 'ACCEPTED', 'the original goes on');
audit_ok($node, 'after the copies');
end_server('INT');

# ---- A worker begins the boot as well, and ends what time ends ------------------------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'limitledger'\nlimitledger.worker_linger = '100ms'");
start_again();
$node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM limitledger.local_shard WHERE sealed_at IS NULL)) or die 'no worker began the boot';
pass('after a start with nobody calling, a worker seals what the boot before held');
accepted('postgres', [ 'short', 's' ]);
$node->safe_psql('postgres', q(ALTER TABLE limitledger.local_shard DISABLE TRIGGER USER;
  UPDATE limitledger.local_shard SET hold_ttl = '200 milliseconds', expires_at = now() + interval '1 second' WHERE subject = 'short';
  ALTER TABLE limitledger.local_shard ENABLE TRIGGER USER));
is($node->safe_psql('postgres', q(SELECT outcome FROM limitledger.shard_reserve('short', 'chat', 'h', 10, sha256('d')))), 'ACCEPTED', 'a short hold');
$node->poll_query_until('postgres', q(SELECT state = 'EXPIRED' FROM limitledger.shard_reservation WHERE subject = 'short')) or die 'the hold stays';
pass('ends in time');
$node->poll_query_until('postgres', q(SELECT sealed_by = 'expiry' FROM limitledger.local_shard WHERE subject = 'short')) or die 'the shard stays';
pass('and so does its shard');
audit_ok($node, 'at the end');
end_server('INT');
done_testing();
