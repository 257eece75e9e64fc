# Limitledger.pm
#	  What every TAP file needs: a server with the ledger, a policy, an audit,
#	  a pooler, and a way to let several sessions meet at the same instant.

package Limitledger;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use IPC::Run ();
use JSON::PP ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(ledger_node publish audit_ok value_is bench bench_start
  race_prelude write_script wait_blocked failed_transactions session
  send_query pooler_start pooler_stop postmaster_start postmaster_end);

# ledger_node returns a started server on which the extension exists.
sub ledger_node
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', join("\n", 'max_connections = 120', @conf, ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION limitledger');
	return $node;
}

# publish puts one admissionBudget.v1 in force: 1,000 units without refill
# unless said otherwise.  An undefined field is left out.  Returns its generation.
sub publish
{
	my ($node, %field) = @_;
	my %document = (
		schema => 'admissionBudget.v1',
		subject => 't1',
		route => 'chat',
		region => '*',
		unit => 'tokens',
		refill => { kind => 'none' },
		burst => 1000,
		epoch => { length => '1 day' },
		estimatorDigests => [],
		holdTtl => '30 seconds',
		executionTtl => '10 minutes',
		hardExecutionLimit => 1_000_000,
		maximumOverdraft => 500,
		priority => 0,
		weight => 1,
		fairnessBudget => 1000,
		retention => '1 day',
		%field);

	$document{largestReservation} //= $document{burst} // $document{refill}{quota};
	delete $document{$_} for grep { !defined $document{$_} } keys %document;

	my $json = JSON::PP->new->canonical->encode(\%document);
	return $node->safe_psql('postgres',
		"SELECT generation FROM limitledger.publish_policy(\$json\$$json\$json\$)");
}

# audit_ok asserts that verify_conservation() finds nothing.
sub audit_ok
{
	my ($node, $when) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($node->safe_psql('postgres', 'SELECT * FROM limitledger.verify_conservation()'),
		'', "the books balance: $when");
}

# value_is asserts what a query prints (columns by |, rows by line).
sub value_is
{
	my ($node, $query, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($node->safe_psql('postgres', $query), $expected, $name);
}

# write_script keeps a pgbench script in the temporary folder of the test.
sub write_script
{
	my ($name, $text) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/$name.pgbench";

	open(my $handle, '>', $file) or die "$file: $!";
	print $handle $text;
	close($handle);
	return $file;
}

# race_prelude makes the clients of one pgbench run meet: round n of all of them
# begins at start + n * period seconds, each late by a random part of `jitter` us.
sub race_prelude
{
	my ($period, $jitter) = @_;
	my $start = sprintf('%.3f', time() + 0.7);

	return <<"EOF2";
\\set round :round + 1
SELECT pg_sleep(greatest(0, $start + :round * $period - extract(epoch FROM clock_timestamp())::float8));
\\set jitter random(0, $jitter)
\\sleep :jitter us
EOF2
}

sub bench_command
{
	my ($node, @args) = @_;

	return [ 'pgbench', '--no-vacuum', '--host', $node->host, '--port', $node->port,
		'--define', 'round=0', @args, 'dbname=postgres application_name=bench' ];
}

# bench runs pgbench and returns (exit code, what it printed).
sub bench
{
	my ($node, @args) = @_;
	my $output = '';

	IPC::Run::run(bench_command($node, @args), '<', \undef, '>', \$output, '2>&1');
	my $code = $? >> 8;
	note "pgbench @args: $code\n$output";
	return ($code, $output);
}

# bench_start runs pgbench beside the test; end it with ->kill_kill or ->finish.
sub bench_start
{
	my ($node, @args) = @_;
	my $output = '';

	return IPC::Run::start(bench_command($node, @args), '<', \undef, '>', \$output, '2>&1');
}

# failed_transactions reads how many pgbench gave up (serialization, deadlock).
sub failed_transactions
{
	my ($output) = @_;

	return $output =~ /number of failed transactions: (\d+)/ ? $1 : die "no count in: $output";
}

# session opens a psql that stays, and survives an ERROR.
sub session
{
	my ($node, $database) = @_;

	return $node->background_psql($database // 'postgres', on_error_stop => 0);
}

# send_query gives a session a statement that will block, and returns at once.
sub send_query
{
	my ($session, $query) = @_;

	$session->query_until(qr/sent/, "\\echo sent\n$query;\n");
}

# wait_blocked returns once `count` other sessions wait for a lock.
sub wait_blocked
{
	my ($node, $count) = @_;

	$node->poll_query_until('postgres', <<"EOF2") or die 'nobody waits for a lock';
SELECT count(*) >= $count FROM pg_stat_activity WHERE wait_event_type = 'Lock'
EOF2
}

my %postmasters;

# postmaster_start starts a server as a child of this test, and returns its pid: one that
# init adopts may stay a zombie for seconds after it was killed, and keeps its successor
# from starting.
sub postmaster_start
{
	my ($node) = @_;
	my $pid = fork() // die "fork: $!";

	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>>', $node->logfile);
		open(STDERR, '>&', \*STDOUT);
		exec('postgres', '-D', $node->data_dir) or POSIX::_exit(1);
	}
	$postmasters{$pid} = $$;
	return $pid;
}

# postmaster_end signals it and waits; one that is left over is ended with the test.
sub postmaster_end
{
	my ($pid, $signal) = @_;

	return if $postmasters{$pid} != $$;
	if (waitpid($pid, POSIX::WNOHANG) == 0)
	{
		kill $signal, $pid;
		waitpid $pid, 0;
	}
	delete $postmasters{$pid};
	return;
}
END { my $status = $?; postmaster_end($_, 'QUIT') for keys %postmasters; $? = $status; }

my %pooler_folders;

# pooler_start runs PgBouncer in transaction mode before a server, for one role.
# Returns the folder and the port of its socket.
sub pooler_start
{
	my ($node, $user, %setting) = @_;
	my ($bouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
	die 'pgbouncer is not installed' unless defined $bouncer;

	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	%setting = (
		listen_addr => '',
		listen_port => $port,
		unix_socket_dir => $folder,
		auth_type => 'any',
		auth_file => "$folder/users.txt",
		pool_mode => 'transaction',
		logfile => "$folder/pgbouncer.log",
		pidfile => "$folder/pgbouncer.pid",
		%setting);
	append_to_file("$folder/users.txt", qq("$user" ""\n));
	append_to_file("$folder/pgbouncer.ini", join("\n", '[databases]',
		sprintf('postgres = host=%s port=%s dbname=postgres user=%s', $node->host, $node->port, $user),
		'[pgbouncer]', map({ "$_ = $setting{$_}" } sort keys %setting), ''));
	system_or_bail($bouncer, '-q', '-d', "$folder/pgbouncer.ini");
	$pooler_folders{$folder} = $$;
	return ($folder, $port);
}

# pooler_stop ends a pooler; one that is left over ends with the test.
sub pooler_stop
{
	my ($folder) = @_;
	my $owner = delete $pooler_folders{$folder};

	return unless defined $owner && $owner == $$ && -e "$folder/pgbouncer.pid";
	chomp(my $pid = slurp_file("$folder/pgbouncer.pid"));
	kill('INT', $pid) if $pid =~ /^\d+$/;
	return;
}
END { my $status = $?; pooler_stop($_) for keys %pooler_folders; $? = $status; }

1;
