# A ledger and two gateways: units that leave while all is well, are spent while the
# ledger is gone, and come back as far as reports prove it (G1-G8, B8, E1).
#
# Fails when: a unit is spent twice over ledger and gateways, a shard can be spent by two
# gateways, after a restart or after its end, units come back twice, before the seal or
# without receipts, excess is forgotten, or what is signed was not committed.

use strict;
use warnings FATAL => 'all';

use FindBin;
use IPC::Run ();
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Utils;
use Shards;
use Test::More;
use Time::HiRes qw(usleep);

my $centre = shard_node('centre', 'log_statement = none', 'wal_level = replica', 'max_wal_senders = 4');
my $gateway = shard_node('gwa', 'log_statement = none');
my $other = shard_node('gwb', 'log_statement = none');

join_gateway($centre, $gateway, 'gw-a');
join_gateway($centre, $other, 'gw-b');

# policy puts one in force that lets 80 percent of 1,000 units go into shards.
sub policy
{
	my ($subject, %more) = @_;

	return publish($centre, subject => $subject, emergencyMode => 'enabled', emergencyShare => 80,
		shardTtl => '1 hour', holdTtl => '1 minute', largestReservation => 500, %more);
}

# give issues, signs and hands over a shard of gw-a, in one go; returns its envelope.
sub give
{
	my ($subject, $shard, $units) = @_;
	my $envelope;

	is(issue_shard($centre, $subject, $shard, 'gw-a', $units), 'ACCEPTED', "$shard: issued");
	$envelope = sign_shard($centre, $subject, $shard);
	is(accept_shard($gateway, $envelope), 'ACCEPTED', "$shard: accepted");
	return $envelope;
}

# on_gateway makes a call about a reservation; returns outcome, dimension or state, and replayed.
sub on_gateway
{
	my ($call, $node) = @_;

	return ($node // $gateway)->safe_psql('postgres',
		"SELECT concat_ws(' ', outcome, coalesce(dimension, state), CASE WHEN replayed THEN 'replayed' END) FROM limitledger.$call");
}

sub reserve
{
	my ($subject, $id, $units, $node) = @_;

	return on_gateway("shard_reserve('$subject', 'chat', '$id', $units, sha256('$id'))", $node);
}

sub start { my ($subject, $id) = @_; return on_gateway("shard_start('$subject', '$id', 'o-$id')"); }

sub settle
{
	my ($subject, $id, $units) = @_;

	return on_gateway("shard_settle('$subject', '$id', 'o-$id', $units)");
}

sub seal
{
	my ($subject, $shard) = @_;

	return $gateway->safe_psql('postgres', "SELECT concat_ws(' ', outcome, dimension) FROM limitledger.seal_shard('$subject', '$shard')");
}

# report cuts and signs the next report of a shard.
sub report
{
	my ($subject, $shard) = @_;
	my ($answer) = cut_report($gateway, $subject, $shard);

	is($answer, 'ACCEPTED', "$shard: a report is cut");
	return signed_report($gateway, $subject, $shard);
}

# all_balance asserts the books of every server.
sub all_balance
{
	my ($when) = @_;

	audit_ok($_->[1], "$_->[0], $when") for [ 'ledger', $centre ], [ 'gateway', $gateway ], [ 'other gateway', $other ];
	return;
}

sub equation
{
	my ($subject) = @_;

	return $centre->safe_psql('postgres', <<"SQL");
SELECT format('%s + %s + %s = %s + %s + %s + %s + %s', opening, minted, overdraft_issued, available, reserved, spent, retired_for_emergency, overdraft_repaid)
FROM limitledger.get_budget('$subject', 'chat')
SQL
}

# ---- The partition -----------------------------------------------------------------
policy('t');
give('t', 's1', 200);
give('t', 's2', 200);
is(equation('t'), '1000 + 0 + 0 = 600 + 0 + 0 + 400 + 0', 'two shards have left');
all_balance('after the issue');

# The link is cut: the ledger is gone altogether, and comes back by recovery.
$centre->stop('immediate');
my $life = write_script('life', <<'SQL');
\set round :round + 1
SELECT outcome FROM limitledger.shard_reserve('t', 'chat', 'r-' || :client_id || '-' || :round, 2, sha256('d')) \gset
\sleep 5 ms
SELECT outcome FROM limitledger.shard_start('t', 'r-' || :client_id || '-' || :round, 'o-' || :client_id || '-' || :round) \gset
\sleep 10 ms
SELECT outcome FROM limitledger.shard_settle('t', 'r-' || :client_id || '-' || :round, 'o-' || :client_id || '-' || :round, 1) \gset
SQL
my $load = bench_start($gateway, '-c', 8, '-j', 2, '-T', 60, '-f', $life);
$gateway->poll_query_until('postgres', 'SELECT sum(local_spent) >= 60 FROM limitledger.local_shard') or die 'nothing was spent';
kill_server($gateway);
$load->finish;
$gateway->start;

# The first call of the new boot ends what the old one held.
is(reserve('t', 'late', 1), 'REFUSED sealed', 'the restart can spend nothing of the old boot');
is($gateway->safe_psql('postgres', "SELECT string_agg(DISTINCT sealed_by, ' ') FROM limitledger.local_shards WHERE subject = 't'"), 'boot', 'its shards are sealed');
is($gateway->safe_psql('postgres', "SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM limitledger.shard_reservations WHERE ended_at IS NULL"),
	'USAGE_UNKNOWN', 'what was open is unknown');
audit_ok($gateway, 'after the restart');

# One item stays unknown, receipts come for the others.
my @open = split /\n/, $gateway->safe_psql('postgres', "SELECT reservation_id FROM limitledger.shard_reservations WHERE ended_at IS NULL ORDER BY 1");
my $last = pop @open;
is(join(' ', sort map { on_gateway("shard_settle('t', '$_', replace('$_', 'r-', 'o-'), 1)") } @open), join(' ', ('ACCEPTED SETTLED') x @open), 'receipts end unknown items');

# The link is back.
$centre->start;
is(announce($centre, $gateway, 'gw-a'), 'ACCEPTED', 'the new boot is announced');
my ($spent) = $gateway->safe_psql('postgres', "SELECT sum(local_spent) FROM limitledger.local_shards WHERE subject = 't'");
my %first = map { $_ => report('t', $_) } qw(s1 s2);
like(reconcile($centre, 't', $first{$_}), qr/^ACCEPTED 0\//, "$_: reconciled") for qw(s1 s2);
all_balance('after the reconciliation');
is(shard_row($centre, 't', $_), local_of($gateway, 't', $_), "$_: both sides say the same") for qw(s1 s2);
my $unknown = 2;
is($centre->safe_psql('postgres', "SELECT available FROM limitledger.get_budget('t', 'chat')"), 600 + 400 - $spent - $unknown,
	"what was not used is back: not the $spent that were spent, nor the $unknown that nobody knows of");
is(reconcile($centre, 't', $first{s1}), 'ACCEPTED replayed 0/' . join('/', ($centre->safe_psql('postgres',
	"SELECT confirmed_units FROM limitledger.emergency_shard WHERE shard_id = 's1'")) x 2) . ($last =~ /./ && $centre->safe_psql('postgres',
	"SELECT CASE WHEN settled_at IS NOT NULL THEN ' settled' ELSE '' END FROM limitledger.emergency_shard WHERE shard_id = 's1'")), 'the same report again changes nothing');

# The receipt of the unknown item lets its rest come back.
is(on_gateway("shard_settle('t', '$last', replace('$last', 'r-', 'o-'), 1)"), 'ACCEPTED SETTLED', 'the last receipt');
my $home = $gateway->safe_psql('postgres', "SELECT shard_id FROM limitledger.shard_reservations WHERE reservation_id = '$last'");
is(reconcile($centre, 't', report('t', $home)), 'ACCEPTED 0/1/1 settled', 'its rest comes back, once');
is($centre->safe_psql('postgres', "SELECT b.available + sum(e.local_spent) FROM limitledger.get_budget('t', 'chat') b, limitledger.emergency_shard e GROUP BY b.available"),
	1000, 'over ledger and gateway 1,000 units are there, or spent');
is($centre->safe_psql('postgres', "SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'rest', 500, sha256('rest'), start_operation => 'rest')"), 'ACCEPTED', 'the ledger goes on');
all_balance('after the last receipt');

# ---- Two gateways, one shard -----------------------------------------------------------
policy('twice');
my $envelope = give('twice', 'mine', 100);
is(accept_shard($other, $envelope), 'REFUSED gateway', 'another gateway can\'t accept it');
is(accept_shard($gateway, $envelope), 'ACCEPTED replayed', 'the same one accepts it once');
is(reserve('twice', 'a', 100), 'ACCEPTED RESERVED', 'and spends it');
is(reserve('twice', 'b', 1), 'REFUSED available', 'once');
is(reserve('twice', 'a', 1, $other), 'REFUSED no_shard', 'the other one has nothing');

# Each peer admits from its own shard, the ledger from what is left: never more than there was.
policy('peers', burst => 300, largestReservation => 300, maximumOverdraft => 0);
is(issue_shard($centre, 'peers', 'pa', 'gw-a', 100), 'ACCEPTED', 'a hundred of 300 for one gateway');
is(issue_shard($centre, 'peers', 'pb', 'gw-b', 100), 'ACCEPTED', 'a hundred for another');
is(accept_shard($gateway, sign_shard($centre, 'peers', 'pa')), 'ACCEPTED', 'accepted');
is(accept_shard($other, sign_shard($centre, 'peers', 'pb')), 'ACCEPTED', 'accepted');
is(equation('peers'), '300 + 0 + 0 = 100 + 0 + 0 + 200 + 0', 'available is 100, retired 200');
is($centre->safe_psql('postgres', <<'SQL'), '100|50', 'the ledger admits exactly 100 of 150');
SELECT count(*) FILTER (WHERE outcome = 'ACCEPTED'), count(*) FILTER (WHERE dimension = 'available')
FROM generate_series(1, 150) AS n, LATERAL limitledger.reserve_capacity('peers', 'chat', 'r' || n, 1, sha256('d'))
SQL
is($other->safe_psql('postgres', q(SELECT outcome FROM limitledger.seal_shard('peers', 'pb'))), 'ACCEPTED', 'one of them seals');
cut_report($other, 'peers', 'pb');
my $pb = signed_report($other, 'peers', 'pb');
is(reconcile($centre, 'peers', $pb), 'ACCEPTED 0/100/100 settled', 'its unused units come back');
is(reconcile($centre, 'peers', $pb), 'ACCEPTED replayed 0/100/100 settled', 'once');
is($centre->safe_psql('postgres', q(SELECT count(*) FILTER (WHERE outcome = 'ACCEPTED') FROM generate_series(1, 150) AS n,
	LATERAL limitledger.reserve_capacity('peers', 'chat', 'q' || n, 1, sha256('d')))), 100, 'and can be spent, once');
is($gateway->safe_psql('postgres', q(SELECT count(*) FILTER (WHERE outcome = 'ACCEPTED') FROM generate_series(1, 150) AS n,
	LATERAL limitledger.shard_reserve('peers', 'chat', 'q' || n, 1, sha256('d')))), 100, 'the other shard as well: 300 in all');

# A gateway can't report the other one's shard, whatever it signs.
my $foreign = $other->safe_psql('postgres', <<'SQL');
BEGIN; SET LOCAL session_replication_role = replica;
INSERT INTO limitledger.local_shard SELECT (jsonb_populate_record(l, '{"shard_id": "pa", "fence": 900}')).* FROM limitledger.local_shard l WHERE shard_id = 'pb';
INSERT INTO limitledger.local_report SELECT (jsonb_populate_record(r, '{"shard_id": "pa"}')).* FROM limitledger.local_report r WHERE shard_id = 'pb';
SELECT envelope FROM limitledger.seal_shard_report('peers', 'pa', 1);
ROLLBACK;
SQL
is(reconcile($centre, 'peers', $foreign), 'REFUSED gateway', 'a report of another gateway\'s shard is refused');
is(shard_row($centre, 'peers', 'pa'), '100 = 100 + 0 + 0 + 0, 0', 'and changes nothing');

# ---- An old shard after a restart; fences ------------------------------------------------
policy('old');
my $before = give('old', 'o1', 100);
is(issue_shard($centre, 'old', 'o2', 'gw-a', 100), 'ACCEPTED', 'issued, and under way');
my $under_way = sign_shard($centre, 'old', 'o2');
$gateway->restart;
is(accept_shard($gateway, $under_way), 'REFUSED boot_epoch', 'what was on its way to the boot before is refused');
is(accept_shard($gateway, $before), 'ACCEPTED replayed', 'what that boot had accepted is known');
is(reserve('old', 'r', 1), 'REFUSED sealed', 'and spent by nobody');
is(issue_shard($centre, 'old', 'o3', 'gw-a', 100), 'ACCEPTED', 'before the boot is announced');
is(accept_shard($gateway, sign_shard($centre, 'old', 'o3')), 'REFUSED boot_epoch', 'a shard is still for the old one');
is(announce($centre, $gateway, 'gw-a'), 'ACCEPTED', 'announced');
is(sign_shard($centre, 'old', 'o3'), 'REFUSED boot_epoch', 'and not signed for it any more');
is(issue_shard($centre, 'old', 'o4', 'gw-a', 50), 'ACCEPTED', 'the older of two');
is(issue_shard($centre, 'old', 'o5', 'gw-a', 50), 'ACCEPTED', 'the newer of two');
my $older = sign_shard($centre, 'old', 'o4');
is(accept_shard($gateway, sign_shard($centre, 'old', 'o5')), 'ACCEPTED', 'the newer comes first');
is(accept_shard($gateway, $older), 'REFUSED fence', 'the older one is behind its fence');

# ---- The end of a shard, and clocks that are wrong ----------------------------------------
policy('time');
give('time', 'c1', 100);
is(issue_shard($centre, 'time', 'c2', 'gw-a', 100), 'ACCEPTED', 'another one');
my $late = sign_shard($centre, 'time', 'c2');
for my $clock ([ 'an hour fast', '61 minutes', 'REFUSED shard_expired', 'REFUSED shard_expired' ],
	[ 'an hour slow', '-60 minutes', 'ACCEPTED RESERVED', 'ACCEPTED' ])
{
	my ($what, $by, $reserves, $accepts) = @$clock;
	my $set = "SET limitledger.clock_override = '" . $gateway->safe_psql('postgres',
		"SELECT to_char((clock_timestamp() + interval '$by') AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00')") . "';";

	is($gateway->safe_psql('postgres', "$set SELECT concat_ws(' ', outcome, coalesce(dimension, state)) FROM limitledger.shard_reserve('time', 'chat', 'r $what', 10, sha256('d'))"),
		$reserves, "a clock $what: reserve");
	is($gateway->safe_psql('postgres', "$set SELECT concat_ws(' ', outcome, dimension) FROM limitledger.accept_emergency_shard('$late')"),
		$accepts, "a clock $what: accept");
}
all_balance('with a wrong clock');
is(seal('time', 'c1'), 'ACCEPTED', 'sealed');
is(reconcile($centre, 'time', report('time', 'c1')), 'ACCEPTED 0/90/90', 'the ledger\'s books need no gateway\'s clock');

# ---- Before the seal; excess; debt -----------------------------------------------------------
policy('excess', maximumOverdraft => 100);
give('excess', 'e1', 100);
is(reserve('excess', $_, 40), 'ACCEPTED RESERVED', "a hold of 40: $_") for qw(a b);
is(start('excess', 'a'), 'ACCEPTED STARTED', 'started');
is(settle('excess', 'a', 10), 'ACCEPTED SETTLED', 'settled with 10');
is(local_of($gateway, 'excess', 'e1'), '100 = 50 + 40 + 10 + 0, 0', 'the rest can be used again');
is(reconcile($centre, 'excess', report('excess', 'e1')), 'ACCEPTED 0/0/0', 'before the seal nothing comes back');
is(start('excess', 'b'), 'ACCEPTED STARTED', 'the other one');
is(settle('excess', 'b', 95), 'ACCEPTED SETTLED_WITH_DEBT', 'uses more than the shard has');
is(local_of($gateway, 'excess', 'e1'), '100 = 0 + 0 + 100 + 0, 5', 'what was available first, the rest is excess');
is(reserve('excess', 'c', 1), 'REFUSED excess', 'a gateway with excess stops');
$centre->safe_psql('postgres', "SELECT outcome FROM limitledger.reserve_capacity('excess', 'chat', 'all', 500, sha256('all'))");
$centre->safe_psql('postgres', "SELECT outcome FROM limitledger.reserve_capacity('excess', 'chat', 'all2', 398, sha256('all'))");
is(reconcile($centre, 'excess', report('excess', 'e1')), 'ACCEPTED 5/0/0 settled', 'the excess is booked');
is(equation('excess'), '1000 + 0 + 3 = 0 + 898 + 5 + 100 + 0', 'on available units first, the rest is debt');
is($centre->safe_psql('postgres', "SELECT outcome || ' ' || dimension FROM limitledger.reserve_capacity('excess', 'chat', 'no', 1, sha256('no'))"), 'REFUSED debt', 'which stops admission');
is(issue_shard($centre, 'excess', 'e2', 'gw-a', 1), 'REFUSED debt', 'and shards');
all_balance('with debt');

# ---- Reports that are out of order, altered, or do not add up ----------------------------------
policy('order');
give('order', 'q1', 100);
my @reports;
for my $n (1 .. 3)
{
	is(reserve('order', "r$n", 10), 'ACCEPTED RESERVED', "hold $n");
	is(start('order', "r$n"), 'ACCEPTED STARTED', "started $n");
	is(settle('order', "r$n", $n), 'ACCEPTED SETTLED', "settled $n");
	push @reports, report('order', 'q1');
}
is((cut_report($gateway, 'order', 'q1'))[1], 3, 'with nothing new the last number stands');
is(signed_report($gateway, 'order', 'q1', 2), $reports[1], 'a report that was lost is signed again, byte for byte');
is(reconcile($centre, 'order', $reports[1]), 'REFUSED sequence', 'the second before the first');
is(reconcile($centre, 'order', $reports[0]), 'ACCEPTED 0/0/0', 'the first');
is(reconcile($centre, 'order', $reports[0]), 'ACCEPTED replayed 0/0/0', 'its reply was lost');
is(reconcile($centre, 'order', $reports[2]), 'REFUSED sequence', 'the third before the second');
is(reconcile($centre, 'order', $reports[1]), 'ACCEPTED 0/0/0', 'the second');
is(reconcile($centre, 'order', $reports[0]), 'ACCEPTED replayed 0/0/0', 'an old one, late');

# What an honest gateway never signs: rows altered by hand, with the guards off.
sub forged
{
	my ($statement, $sequence) = @_;
	my $text = $gateway->safe_psql('postgres', <<"SQL");
BEGIN; SET LOCAL session_replication_role = replica;
$statement;
SELECT coalesce(envelope, '') FROM limitledger.seal_shard_report('order', 'q1', $sequence);
ROLLBACK;
SQL

	return $text;
}
my $shift = "UPDATE limitledger.local_report SET %s WHERE shard_id = 'q1' AND sequence = 3";
is(reconcile($centre, 'order', forged(sprintf($shift, 'local_spent = local_spent + 1'), 3)), 'REFUSED conservation', 'figures that do not add up');
is(reconcile($centre, 'order', forged(sprintf($shift, 'local_spent = 1, local_available = local_available + local_spent - 1'), 3)), 'REFUSED falls', 'a figure that falls');
is(reconcile($centre, 'order', forged("UPDATE limitledger.shard_reservation SET actual_units = 10 WHERE reservation_id = 'r3'", 3)), 'REFUSED receipts', 'receipts beyond the figures');
is(reconcile($centre, 'order', forged("UPDATE limitledger.shard_reservation SET sequence = CASE reservation_id WHEN 'r1' THEN 3 END WHERE reservation_id IN ('r1', 'r3')", 3)),
	'REFUSED receipts', 'a receipt that was reconciled before');
is($centre->safe_psql('postgres', "SET limitledger.witness_file = ''; SELECT concat_ws(' ', outcome, dimension) FROM limitledger.reconcile_emergency_shard('order', '$reports[2]')"),
	'REFUSED recovery', 'a ledger that may be a copy takes in nothing');
is(reconcile($centre, 'order', forged(sprintf($shift, 'local_spent = local_spent + 1, local_available = local_available - 1'), 3)), 'ACCEPTED 0/0/0', 'what adds up is believed');
is(reconcile($centre, 'order', $reports[2]), 'CONFLICT report', 'and nothing else under its number');
is(reconcile($centre, 'order', forged("UPDATE limitledger.local_shard SET fence = fence + 1 WHERE shard_id = 'q1'", 3)), 'REFUSED fence', 'another fence');
is(reconcile($centre, 'order', forged("UPDATE limitledger.local_shard SET boot_epoch = gen_random_uuid() WHERE shard_id = 'q1'", 3)), 'REFUSED boot_epoch', 'another boot');
is(reconcile($centre, 'other', $reports[0]), 'UNKNOWN emergency_shard', 'another subject has no such shard');
is(reconcile($centre, 'order', substr($reports[2], 0, -1)), 'REFUSED envelope signature_form', 'a report that was cut short');
is(reconcile($centre, 'order', sign_shard($centre, 'time', 'c2')), 'REFUSED envelope header', 'a shard is no report');
all_balance('after the reports');

# ---- What is signed is committed (G8) -------------------------------------------------------
policy('signed');
is($centre->safe_psql('postgres', <<'SQL'), "ACCEPTED\nREFUSED not_committed", 'in its own transaction a shard is not signed');
BEGIN;
SELECT outcome FROM limitledger.issue_emergency_shard('signed', 'chat', 'g1', 'gw-a', 10);
SELECT outcome || ' ' || dimension FROM limitledger.sign_emergency_shard('signed', 'g1');
ROLLBACK;
SQL
is(sign_shard($centre, 'signed', 'g1'), 'UNKNOWN emergency_shard', 'and after its ROLLBACK there is none');
give('signed', 'g2', 10);
is($gateway->safe_psql('postgres', <<'SQL'), "ACCEPTED\nREFUSED not_committed", 'a report neither');
BEGIN;
SELECT outcome FROM limitledger.cut_shard_report('signed', 'g2');
SELECT outcome || ' ' || dimension FROM limitledger.report_shard('signed', 'g2', 1);
ROLLBACK;
SQL
is(sign_shard($centre, 'signed', 'g2'), sign_shard($centre, 'signed', 'g2'), 'asked again it is the same envelope');

# A debit that no standby has is one that a fail-over forgets: its wait was cancelled, so the
# signature waits in its place (F4), also behind something else that its transaction has written.
$centre->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = 'nobody'));
$centre->reload;
for my $before ('', "SELECT FROM limitledger.reserve_capacity('signed', 'chat', 'r', 1, sha256('d'));")
{
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $centre->connstr('postgres'), '-c',
			"BEGIN; $before SELECT 'signed', outcome FROM limitledger.sign_emergency_shard('signed', 'g2'); ROLLBACK" ],
		'<', \undef, '>', \$out, '2>', \$err);

	ok($centre->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%sign_emergency_shard%'"),
		'a signature waits for the standby' . ($before && ', whatever came before it'));
	$centre->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
	$run->finish;
}
$centre->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$centre->reload;

# ---- A gateway that never returns; a generation that goes ---------------------------------------
my $generation = policy('gone');
give('gone', 'w1', 100);
is(reserve('gone', 'r', 30), 'ACCEPTED RESERVED', 'a hold');
is(start('gone', 'r'), 'ACCEPTED STARTED', 'that runs');
$centre->safe_psql('postgres', "SELECT * FROM limitledger.drain_policy($generation, 'over')");
is($centre->safe_psql('postgres', "SELECT outcome, left_shards FROM limitledger.retire_policy($generation)"), 'REFUSED|100', 'a shard that is out keeps its generation from retiring');
is(issue_shard($centre, 'gone', 'w2', 'gw-a', 1), 'REFUSED draining', 'which gives no more');
is($centre->safe_psql('postgres', "SELECT outcome, lost_units FROM limitledger.write_off_shard('gone', 'w1', 'the gateway burned')"), 'ACCEPTED|100', 'an operator writes it off');
is($centre->safe_psql('postgres', "SELECT outcome, left_shards FROM limitledger.retire_policy($generation)"), 'ACCEPTED|0', 'now it retires');
is(settle('gone', 'r', 110), 'ACCEPTED SETTLED_WITH_DEBT', 'the gateway did run');
seal('gone', 'w1');
is(reconcile($centre, 'gone', report('gone', 'w1')), 'ACCEPTED 10/0/0 settled', 'and reports after all: its excess is booked, nothing comes back');
all_balance('after the write-off');

# ---- More receipts than one report carries -----------------------------------------------------
policy('many', burst => 10_000);
give('many', 'm1', 5000);
$gateway->safe_psql('postgres', <<'SQL');
SELECT count(*) FROM generate_series(1, 1500) AS n, LATERAL limitledger.shard_reserve('many', 'chat', 'r' || n, 2, sha256('d'), start_operation => 'o' || n);
SELECT count(*) FROM generate_series(1, 1500) AS n, LATERAL limitledger.shard_settle('many', 'r' || n, 'o' || n, 1);
SQL
seal('many', 'm1');
my @cut = cut_report($gateway, 'many', 'm1');
is("@cut", 'ACCEPTED 1 t', 'the first thousand, and there are more');
is(reconcile($centre, 'many', signed_report($gateway, 'many', 'm1')), 'ACCEPTED 0/0/0', 'nothing comes back while receipts are missing');
@cut = cut_report($gateway, 'many', 'm1');
is("@cut", 'ACCEPTED 2 f', 'the rest');
is(reconcile($centre, 'many', signed_report($gateway, 'many', 'm1')), 'ACCEPTED 0/3500/3500 settled', 'then all that was not used');
all_balance('at the end');

$_->stop for $gateway, $other, $centre;
done_testing();
