# Shards.pm
#	  Two kinds of servers that share capacity: a ledger, and gateways, each with a signing
#	  key and a witness file of its own (G).

package Shards;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(usleep);

our @EXPORT = qw(shard_node join_gateway announce issue_shard sign_shard accept_shard cut_report
  signed_report reconcile local_of shard_row kill_server);

my $ROOT = "$FindBin::RealBin/../..";

# make_key makes a signing key beside the server's data folder; returns its public line.
sub make_key
{
	my ($path, $kid) = @_;

	unlink $path;
	chomp(my $line = `$ROOT/tools/make-signing-key $path $kid`);
	die 'no key was made' if $?;
	return $line;
}

# shard_node returns a started server with a key, and its witness set up.
sub shard_node
{
	my ($name, @conf) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir("keys_$name");
	my $public = make_key("$folder/signing.key", "$name-1");
	my $node = ledger_node($name,
		"limitledger.signing_key_file = '$folder/signing.key'",
		"limitledger.witness_file = '$folder/witness'", @conf);

	$node->{public_key} = $public;
	$node->{key_folder} = $folder;
	$node->safe_psql('postgres', q(SELECT limitledger.acknowledge_recovery('first set-up')));
	return $node;
}

# announce tells the ledger which boot of a gateway is running.
sub announce
{
	my ($centre, $gateway, $id) = @_;
	my $boot = $gateway->safe_psql('postgres', 'SELECT boot_epoch FROM limitledger.local_gateway');

	return $centre->safe_psql('postgres',
		"SELECT concat_ws(' ', outcome, dimension) FROM limitledger.announce_boot('$id', '$boot')");
}

# join_gateway makes both sides know each other.
sub join_gateway
{
	my ($centre, $gateway, $id) = @_;

	$gateway->safe_psql('postgres', "SELECT * FROM limitledger.open_gateway('$id')");
	$gateway->safe_psql('postgres', "SELECT * FROM limitledger.trust_key('$centre->{public_key}')");
	$centre->safe_psql('postgres', "SELECT * FROM limitledger.register_gateway('$id', '$gateway->{public_key}')");
	announce($centre, $gateway, $id);
	return;
}

# issue_shard debits the pair; returns the answer.
sub issue_shard
{
	my ($centre, $subject, $shard, $gateway, $units) = @_;

	return $centre->safe_psql('postgres',
		"SELECT concat_ws(' ', outcome, dimension) FROM limitledger.issue_emergency_shard('$subject', 'chat', '$shard', '$gateway', $units)");
}

# sign_shard returns the envelope of a shard that was issued.
sub sign_shard
{
	my ($centre, $subject, $shard) = @_;

	return $centre->safe_psql('postgres',
		"SELECT coalesce(envelope, concat_ws(' ', outcome, dimension)) FROM limitledger.sign_emergency_shard('$subject', '$shard')");
}

# accept_shard hands an envelope to a gateway; returns its answer.
sub accept_shard
{
	my ($gateway, $envelope) = @_;

	return $gateway->safe_psql('postgres',
		"SELECT concat_ws(' ', outcome, dimension, detail, CASE WHEN replayed THEN 'replayed' END) FROM limitledger.accept_emergency_shard('$envelope')");
}

# cut_report writes down what has become of a shard; returns the answer, the number and whether more is left.
sub cut_report
{
	my ($gateway, $subject, $shard) = @_;

	return split /\|/, $gateway->safe_psql('postgres',
		"SELECT concat_ws(' ', outcome, dimension), sequence, more FROM limitledger.cut_shard_report('$subject', '$shard')"), -1;
}

# signed_report returns the envelope of a report that was cut: the newest, unless told which.
sub signed_report
{
	my ($gateway, $subject, $shard, $sequence) = @_;
	my $which = defined $sequence ? ", $sequence" : '';

	return $gateway->safe_psql('postgres',
		"SELECT coalesce(envelope, concat_ws(' ', outcome, dimension)) FROM limitledger.report_shard('$subject', '$shard'$which)");
}

# reconcile hands a report to the ledger; returns "outcome dimension detail replayed excess/confirmed/reminted settled".
sub reconcile
{
	my ($centre, $subject, $report) = @_;

	return $centre->safe_psql('postgres', <<"SQL");
SELECT concat_ws(' ', outcome, dimension, detail, CASE WHEN replayed THEN 'replayed' END,
  CASE WHEN excess_units IS NOT NULL THEN excess_units || '/' || confirmed_units || '/' || reminted_units END,
  CASE WHEN settled THEN 'settled' END)
FROM limitledger.reconcile_emergency_shard('$subject', '$report')
SQL
}

# local_of reads G1 of a shard on the gateway: allocated = available + reserved + spent + retired, excess.
sub local_of
{
	my ($gateway, $subject, $shard) = @_;

	return $gateway->safe_psql('postgres', <<"SQL");
SELECT format('%s = %s + %s + %s + %s, %s', allocated_units, local_available, local_reserved, local_spent, local_retired, local_excess)
FROM limitledger.local_shard WHERE subject = '$subject' AND shard_id = '$shard'
SQL
}

# shard_row reads the same as the ledger knows it.
sub shard_row
{
	my ($centre, $subject, $shard) = @_;

	return $centre->safe_psql('postgres', <<"SQL");
SELECT format('%s = %s + %s + %s + %s, %s', allocated_units, local_available, local_reserved, local_spent, local_retired, local_excess)
FROM limitledger.emergency_shard WHERE subject = '$subject' AND shard_id = '$shard'
SQL
}

# kill_server kills a postmaster, and returns once its last child is gone, too.
sub kill_server
{
	my ($node) = @_;
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @children = children_of($postmaster);

	$node->kill9;
	usleep(20_000) while grep { -e "/proc/$_" } $postmaster, @children;
	return;
}

# children_of lists the processes that a process has started.
sub children_of
{
	my ($parent) = @_;

	return grep { parent_of($_) == $parent } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# parent_of reads whose child a process is; 0: nobody's.
sub parent_of
{
	my ($pid) = @_;

	open(my $in, '<', "/proc/$pid/stat") or return 0;
	return (<$in> // '') =~ /^\d+ \(.*\) \S (\d+)/s ? $1 : 0;
}

1;
