# The walk of docs/shards.md, from two servers with nothing to shards that are settled and
# written off: its commands run as they stand, in one shell, and print what is shown (G2 - G7).
#
# A block of shell below <!-- walk --> is a part of it; a plain block right below that is what
# it prints. Only hosts, folders, and how a server is restarted are other ones here.
#
# Fails when: a command of the walk does not run, or prints anything else; a step that its
# commands need is missing; or the books of either side do not balance after it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Cwd qw(abs_path);
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $ROOT = abs_path("$FindBin::RealBin/../..");
my $MARK = '-- the next block --';
my $folder = PostgreSQL::Test::Utils::tempdir('walk');
my %node;

for my $name (qw(ledger gateway))
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init;
	$node{$name}->start;
}
$node{ledger}->safe_psql('postgres', 'CREATE DATABASE app');
$node{gateway}->safe_psql('postgres', 'CREATE DATABASE edge');

my @blocks = blocks();
cmp_ok(scalar @blocks, '>', 10, 'there is a walk');
my @printed = printed(map { $_->[0] } @blocks);

for my $i (0 .. $#blocks)
{
	my ($command, $shown) = @{ $blocks[$i] };

	is($printed[$i] // 'nothing, it was not reached', trimmed($shown), 'block ' . ($i + 1) . ' prints what is shown: ' . first_line($command))
	  if defined $shown;
}
for my $side ([ 'ledger', 'app' ], [ 'gateway', 'edge' ])
{
	my ($name, $database) = @$side;

	is($node{$name}->safe_psql($database, 'SELECT * FROM limitledger.verify_conservation()'), '', "the books of the $name balance");
	is($node{$name}->safe_psql($database, 'SELECT status FROM limitledger.recovery_status()'), 'normal', "and it is no copy");
	$node{$name}->stop;
}
done_testing();

# blocks returns the blocks of the walk, in their order: the commands, and what they print, if that is shown.
sub blocks
{
	my $page = slurp_file("$ROOT/docs/shards.md");
	my @found;

	push @found, [ $1, $2 ] while $page =~ /^<!-- walk -->\n+```sh\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
	return @found;
}

# here puts what is other here in the place of what a reader has.
sub here
{
	my ($block) = @_;
	my ($ledger, $gateway) = map { 'host=' . $node{$_}->host . ' port=' . $node{$_}->port } qw(ledger gateway);
	my $user = getpwuid($>);
	my $restart = join ' ', 'pg_ctl restart -s -w -m fast -D', $node{gateway}->data_dir, '-l', $node{gateway}->logfile;

	$block =~ s/host=ledger\.example/$ledger/g;
	$block =~ s/host=gw-eu-1\.example/$gateway/g;
	$block =~ s/user=postgres/user=$user/g;
	$block =~ s/^ssh \S+ sudo systemctl restart \S+$/$restart/mg;
	$block =~ s/-o postgres //g;
	$block =~ s{sudo -u postgres tools/}{$ROOT/tools/}g;
	$block =~ s{/(etc|var/lib)/limitledger}{$folder/$1}g;
	return $block;
}

# printed runs all blocks in one shell, and returns what each has printed.
sub printed
{
	my $script = join '', map { here($_) . "echo '$MARK'\n" } @_;
	my $said = '';

	local @ENV{qw(PGTZ PGCLIENTENCODING PGUSER)} = ('UTC', 'UTF8', getpwuid($>) . '');
	IPC::Run::run([ 'sh', '-euc', "cd '$folder'\n$script" ], '<', \undef, '>', \$said, '2>&1');
	is($?, 0, 'the walk runs as documented') or diag($said);
	return map { trimmed($_ =~ s/^\(\d+ rows?\)\n//mgr) } split /^\Q$MARK\E\n/m, $said;
}

sub first_line
{
	my ($text) = @_;

	return $text =~ /^SELECT ([^(]*?)\s*(?:\(|;|$)/m ? $1 : (split /\n/, $text)[0];
}

# trimmed takes blanks from the end of lines, and empty lines from both ends of a text.
sub trimmed
{
	my ($text) = @_;

	return $text =~ s/[ \t]+$//mgr =~ s/\n+\z//r =~ s/\A\n+//r;
}
