# A ledger and a gateway, one of which is killed at a random instant in a step of each
# shard's way: issue, sign, accept, spend, seal, cut, report, reconcile. Every step is asked
# again by the same ids until it is answered, as a client would (F2, G2, G6, G8).
#
# LIMITLEDGER_SEED and LIMITLEDGER_SHARD_ROUNDS repeat a run.
#
# Fails when: a shard is there in part, units are lost or come back twice, a step that was
# answered is forgotten, or one that was not can't be asked again.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use POSIX ();
use PostgreSQL::Test::Utils;
use Shards;
use Test::More;
use Time::HiRes qw(time usleep);

my $seed = $ENV{LIMITLEDGER_SEED} // time() * 1000 % 2**31;
my $rounds = $ENV{LIMITLEDGER_SHARD_ROUNDS} // 100;
srand($seed);
note "$rounds rounds of seed $seed: LIMITLEDGER_SEED=$seed LIMITLEDGER_SHARD_ROUNDS=$rounds repeats them";

my %server = map { $_ => shard_node($_, 'log_statement = none', 'restart_after_crash = on') } qw(centre gateway);
my ($centre, $gateway) = @server{qw(centre gateway)};
join_gateway($centre, $gateway, 'gw');
publish($centre, subject => 't', burst => 1_000_000, emergencyMode => 'enabled', emergencyShare => 80, shardTtl => '1 hour',
	holdTtl => '1 minute', largestReservation => 500);

# Each round one step of the way is under fire, in turn; by when in it, chance decides.
my @steps = qw(issue sign accept reserve start settle seal cut report reconcile);
my $target;           # the step, until it is reached
my $victim;           # the process that strikes
my %hit;              # how often which step was hit

# ask runs a step until it is answered; what a crash interrupts is asked again.
sub ask
{
	my ($node, $step, $query) = @_;
	my $until = time() + 60;

	if (defined $target && $step eq $target)
	{
		$victim = strike(rand() < 0.8 ? $node : $server{ (qw(centre gateway))[ rand 2 ] }, rand(0.03));
		undef $target;
	}
	for (;;)
	{
		my ($code, $out, $err) = $node->psql('postgres', $query);

		return $out if $code == 0;
		$err =~ /connection|terminat|recovery mode|starting up|shutting down|not accepting/ or die "$step: $err";
		$hit{$step}++ if $err =~ /connection to server was lost|server closed|crash of another/;
		time() < $until or die "$step: not answered in a minute: $err";
		usleep(20_000);
	}
}

# strike kills a random child of a server's postmaster after a while, in a process of its own.
sub strike
{
	my ($node, $after) = @_;
	my $pid = fork() // die "fork: $!";

	return $pid if $pid;
	usleep($after * 1e6);
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @children = Shards::children_of($postmaster);
	kill('KILL', $children[ rand @children ]) if @children;
	POSIX::_exit(0);
}

sub value { my ($node, $query) = @_; return ask($node, 'look', $query); }

my ($spent, $refused) = (0, 0);
for my $n (1 .. $rounds)
{
	my $envelope = '';
	my $used = 0;

	($target, $victim) = ($steps[ $n % @steps ], undef);
	is(ask($centre, 'issue', "SELECT outcome FROM limitledger.issue_emergency_shard('t', 'chat', 's$n', 'gw', 100)"), 'ACCEPTED', "round $n: issued") or last;
	$envelope = ask($centre, 'sign', "SELECT envelope FROM limitledger.sign_emergency_shard('t', 's$n')");

	# A gateway that was restarted before it accepts has another boot, and refuses.
	my $accepted = ask($gateway, 'accept', "SELECT concat_ws(' ', outcome, dimension) FROM limitledger.accept_emergency_shard('$envelope')");
	if ($accepted eq 'REFUSED boot_epoch')
	{
		$refused++;
		ask($centre, 'write off', "SELECT outcome FROM limitledger.write_off_shard('t', 's$n', 'never accepted')");
	}
	else
	{
		is($accepted, 'ACCEPTED', "round $n: accepted");
		for my $call ("shard_reserve('t', 'chat', 'r$n', 40, sha256('r'))", "shard_start('t', 'r$n', 'o$n')", "shard_settle('t', 'r$n', 'o$n', 30)")
		{
			my $answer = ask($gateway, $call =~ /^shard_(\w+)/, "SELECT concat_ws(' ', outcome, dimension) FROM limitledger.$call");

			# A boot in between seals the shard, and makes what was held unknown.
			$used = 30 if $call =~ /settle/ && $answer eq 'ACCEPTED';
		}
		ask($gateway, 'seal', "SELECT outcome FROM limitledger.seal_shard('t', 's$n')");
		ask($gateway, 'cut', "SELECT outcome FROM limitledger.cut_shard_report('t', 's$n')");
		my $report = ask($gateway, 'report', "SELECT envelope FROM limitledger.report_shard('t', 's$n')");
		is(ask($centre, 'reconcile', "SELECT outcome || ' ' || settled FROM limitledger.reconcile_emergency_shard('t', '$report')"), 'ACCEPTED true', "round $n: reconciled");
		is(value($centre, "SELECT local_spent || ' ' || confirmed_units || ' ' || reminted_units FROM limitledger.emergency_shard WHERE shard_id = 's$n'"),
			join(' ', $used, (100 - $used) x 2), "round $n: what was not used is back, once");
	}
	waitpid($victim, 0) if defined $victim;
	is(value($centre, 'SELECT * FROM limitledger.verify_conservation()'), '', "round $n: the ledger's books balance");
	is(value($gateway, 'SELECT * FROM limitledger.verify_conservation()'), '', "round $n: the gateway's books balance");
	$spent += $accepted eq 'ACCEPTED' ? $used : 100;
	is(value($centre, "SELECT available FROM limitledger.get_budget('t', 'chat')"), 1_000_000 - $spent, "round $n: no unit is lost, none is made");
	ask($centre, 'announce', "SELECT outcome FROM limitledger.announce_boot('gw', '" . value($gateway, 'SELECT boot_epoch FROM limitledger.local_gateway') . "')");
}
note join(', ', map { "$_ $hit{$_}" } sort keys %hit), "; $refused shards were for a boot that was over";
cmp_ok(scalar keys %hit, '>=', $rounds >= 100 ? 5 : 0, 'kills hit many steps');

$_->stop for $gateway, $centre;
done_testing();
