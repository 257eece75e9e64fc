# Grouped admission: calls of many sessions, decided by one worker in one transaction,
# with the same answers as direct calls; durable, and apart from the caller's
# transaction.  Whatever happens to a caller, its pair or the worker, each call has one
# effect or none, and nobody waits for ever (F1-F5, I1).
#
# Fails when: a grouped answer differs from a direct one, a locked pair delays others, a
# call is lost, doubled or left hanging by a cancel, a time-out, an end of its session
# or of the worker, or a call is grouped that must be part of its transaction.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = ledger_node('grouped', "shared_preload_libraries = 'limitledger'", 'restart_after_crash = on',
	"limitledger.worker_linger = '10min'", "limitledger.audit_interval = '1h'", 'wal_level = replica', 'max_wal_senders = 2');
my $ON = 'SET limitledger.grouped = on';
my $WORKER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'limitledger admission'";
my @sessions;

sub soon
{
	my ($query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until('postgres', $query), $name)
	  or diag($node->safe_psql('postgres', 'SELECT pid, backend_type, wait_event, state, query FROM pg_stat_activity'));
}

# client opens a session that calls in groups.
sub client
{
	my (@settings) = @_;
	my $client = session($node);

	$client->query_safe($_) for $ON, @settings;
	push @sessions, $client;
	return $client;
}

sub reserve
{
	my ($subject, $id, $units, $more) = @_;

	return sprintf q(SELECT outcome, replayed FROM limitledger.reserve_capacity('%s', 'chat', '%s', %d, sha256('d')%s)),
	  $subject, $id, $units // 1, $more // '';
}

# apart says what a call answers, and whether it was grouped: then a rollback leaves it.
sub apart
{
	my ($client, $call, $begin) = @_;
	my $answer = '';

	$client->query_safe($begin // 'BEGIN');
	$answer = $client->query_safe($call);
	my $no_id = $client->query_safe('SELECT pg_current_xact_id_if_assigned() IS NULL');
	$client->query_safe('ROLLBACK');
	return "$answer " . ($no_id eq 't' ? 'grouped' : 'direct');
}

# worker_there makes calls until there is a worker to group them.
sub worker_there
{
	my ($client) = @_;

	for (1 .. 600)
	{
		return 1 if apart($client, reserve('warm', 'w' . int(rand(1e9)))) =~ /grouped/;
		usleep(50_000);
	}
	die 'no admission worker';
}

# stored says in which state a reservation is, or '' if there is none.
sub stored
{
	my ($subject, $id) = @_;

	return $node->safe_psql('postgres', "SELECT state FROM limitledger.reservation WHERE (subject, reservation_id) = ('$subject', '$id')");
}

# asking gives a client a call that will wait, and waits until it does.
sub asking
{
	my ($client, $call, $event) = @_;
	my $pid = $client->query_safe('SELECT pg_backend_pid()');
	local $PostgreSQL::Test::Utils::timeout_default = 30;

	send_query($client, $call);
	$node->poll_query_until('postgres', "SELECT wait_event = '$event' AND state = 'active' FROM pg_stat_activity WHERE pid = $pid")
	  or die "it does not wait for $event";
	return $pid;
}

# result collects what a client's last call has printed, its errors behind it.
sub result
{
	my ($client) = @_;
	my $marker = 'done' . int(rand(1e9));

	my $said = $client->query_until(qr/$marker/, "\\echo $marker\n\\warn $marker\n");

	usleep(1000), $client->{run}->pump_nb until $client->{stderr} =~ /$marker/;
	$said .= $client->{stderr};
	$client->{stderr} = '';
	return $said;
}

sub set
{
	my ($setting) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $setting");
	$node->reload;
}

# no_standby makes commits wait for a standby that never comes, until standby() lets them.
sub no_standby
{
	set("synchronous_standby_names = 'nobody'");
	usleep(1_500_000);    # the checkpointer tells everybody; stuck() shows that it has
	return;
}

sub standby
{
	set("synchronous_standby_names = ''");
	return;
}

# stuck waits until the worker waits for the standby.
sub stuck
{
	soon("SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE backend_type = 'limitledger admission'", 'the worker waits for a standby');
}

# shadowed gives a subject a policy of 100 units, and one of 50 as its shadow.  Returns the latter's generation.
sub shadowed
{
	my ($subject) = @_;

	publish($node, subject => $subject, burst => 100);
	my $shadow = $node->safe_psql('postgres', qq(SELECT generation FROM limitledger.publish_policy((SELECT document - 'policyGeneration'
	  || '{"burst": 50, "largestReservation": 50}' FROM limitledger.policies WHERE (subject, route) = ('$subject', 'chat')), false)));
	$node->safe_psql('postgres', "SELECT limitledger.shadow_policy($shadow, 'a test')");
	return $shadow;
}

# together has several clients asked for in one group: what they call waits in the queue
# for a group that takes its time.
sub together
{
	my ($slow, @calls) = @_;

	send_query($slow, reserve('slow', 'slow' . int(rand(1e9))));
	soon("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE backend_type = 'limitledger admission'", 'a group takes its time');
	asking(@$_, 'Extension') for @calls;
	return;
}

publish($node, subject => '*', burst => 1_000_000, largestReservation => 1_000_000);

# ---- Apart from the transaction ------------------------------------------------------

my $c = client();
my $other = client();
worker_there($c);
value_is($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'limitledger admission'", '1', 'one worker');
is(apart($c, reserve('a', 'a1', 10)), 'ACCEPTED|f grouped', 'a reserve is grouped');
is(stored('a', 'a1'), 'RESERVED', 'and stands although its transaction was rolled back');
is($c->query_safe(reserve('a', 'a1', 10)), 'ACCEPTED|t', 'the same call is a replay');
is(apart($c, "SELECT state, operation FROM limitledger.start_reservation('a', 'a1', 'o1')"), 'STARTED|o1 grouped', 'so is a start');
is(apart($c, "SELECT state, actual_units FROM limitledger.settle_usage('a', 'a1', 'o1', 4)"), 'SETTLED|4 grouped', 'a settlement');
is($c->query_safe(reserve('a', 'a2', 10)), 'ACCEPTED|f', 'another one');
is(apart($c, "SELECT state FROM limitledger.release_reservation('a', 'a2')"), 'RELEASED grouped', 'and a release');
value_is($node, "SELECT available, reserved, spent FROM limitledger.budgets WHERE subject = 'a'", '999996|0|4', 'each once');
is($c->query_safe("BEGIN; SAVEPOINT s; " . reserve('a', 'a3') . "; ROLLBACK TO s; COMMIT") =~ s/\s+\z//r, 'ACCEPTED|f', 'a call in a savepoint');
is(stored('a', 'a3'), 'RESERVED', 'stands too');

# ---- Calls that are part of their transaction ------------------------------------------

$node->safe_psql('postgres', 'CREATE TABLE mine (n int)');
for my $case (
	[ 'after a write', 'BEGIN; INSERT INTO mine VALUES (1)' ],
	[ 'in a transaction that has locked rows', "BEGIN; SELECT FROM limitledger.head_budget WHERE subject = 'a' FOR UPDATE" ],
	[ 'at REPEATABLE READ', 'BEGIN ISOLATION LEVEL REPEATABLE READ' ],
	[ 'at SERIALIZABLE', 'BEGIN ISOLATION LEVEL SERIALIZABLE' ],
	[ 'with a clock of its own', "BEGIN; SET LOCAL limitledger.clock_override = '2030-01-01 00:00:00+00'" ],
	[ 'with its own idea of durability', 'BEGIN; SET LOCAL limitledger.durability_required = off' ],
	[ 'that waits for a standby to apply', 'BEGIN; SET LOCAL synchronous_commit = remote_apply' ],
	[ 'that does without triggers', 'BEGIN; SET LOCAL session_replication_role = replica' ],
	[ 'with the setting off', 'BEGIN; SET LOCAL limitledger.grouped = off' ])
{
	my ($name, $begin) = @$case;

	is(apart($c, reserve('a', 'direct'), $begin), 'ACCEPTED|f direct', "direct: a call $name");
	is(stored('a', 'direct'), '', 'which is rolled back with it');
}
is(apart($c, "SELECT state FROM limitledger.settle_usage('a', 'a3', 'o3', 1, source => 'operator')",
	"BEGIN; SELECT limitledger.start_reservation('a', 'a3', 'o3')"), 'SETTLED direct', 'direct: an attested figure');
value_is($node, "SELECT count(*) FROM limitledger.operator_actions WHERE action = 'attest_usage'", '0', 'of which nothing is left');

# A worker that decides by settings of its own serves nobody, not even others who do.
set('limitledger.durability_required = off');
usleep(500_000);
is(apart($c, reserve('a', 'direct'), "BEGIN; SET LOCAL limitledger.clock_override = '2030-01-01 00:00:00+00'"), 'ACCEPTED|f direct',
	'direct: a call with a clock of its own, beside a worker that is not durable');
set('limitledger.durability_required = on');
usleep(500_000);
worker_there($c);
$c->query("BEGIN READ ONLY; " . reserve('a', 'never'));
like(result($c), qr/cannot execute reserve_capacity\(\) in a read-only transaction/, 'a read-only transaction gets its error');
$c->query_safe('ROLLBACK');

# ---- The same answers --------------------------------------------------------------------

# One random list of calls, made directly for one subject and in groups for another.
srand($ENV{LIMITLEDGER_SEED} // 7);
publish($node, subject => $_, route => 'same', burst => 600, largestReservation => 200, hardExecutionLimit => 400, maximumOverdraft => 5000) for qw(same1 same2);
my $SHOWN = 'outcome, dimension, state, replayed, reserved_units, actual_units, operation, expires_at IS NULL, available, cap, reset_at IS NULL, retry_after_ms, retry_kind, hard_limit, excess_units, excess_generation IS NULL, excess_epoch IS NULL';
my @list = map {
	my ($id, $op, $units) = ('r' . int(rand(120)), 'o' . int(rand(100)), 1 + int(rand(120)));
	my $digest = "sha256('" . (rand() < 0.9 ? 'd' : 'e') . "')";
	my $start = rand() < 0.3 ? ", start_operation => '$op'" : '';
	my @calls = (
		("reserve_capacity(:'s', 'same', '$id', @{[$units % 5 * 20 + 10]}, $digest$start)") x 3,
		("start_reservation(:'s', '$id', '$op')") x 2,
		("settle_usage(:'s', '$id', '$op', @{[$units > 100 ? $units : $units % 60]})") x 2,
		"release_reservation(:'s', '$id')",
		"settle_usage(:'s', '$id', NULL, 5)",
		("settle_usage(:'s', 'r1', 'o1', @{[$units % 3]})") x 2, "reserve_capacity(:'s', 'same', 'r1', 9, sha256('d'), start_operation => 'o1')",
		"reserve_capacity(:'s', 'nowhere', '$id', 5, $digest)",
		"reserve_capacity(:'s', 'same', '$id', 9000, $digest, region => 'eu', deadline => '2100-01-01')");
	$calls[ rand @calls ];
} 1 .. 600;
splice @list, 400, 0, "settle_usage(:'s', 'big', 'big', 400)";
unshift @list, "reserve_capacity(:'s', 'same', 'big', 200, sha256('d'), start_operation => 'big')";
my $file = write_script('same', join('', map { ":begin\nSELECT $SHOWN FROM limitledger.$_;\n:end\n" } @list));

# all_of runs the list and returns what it printed and how often each answer was counted.
sub all_of
{
	my ($subject, $grouped, @around) = @_;
	my $answers = 'SELECT call, outcome, dimension, replayed, answers FROM limitledger.decision_counters';
	my %before = map { my @f = split /\|/; join('|', @f[ 0 .. 3 ]) => $f[4] } split /\n/, $node->safe_psql('postgres', $answers);
	my ($out, $err) = ('', '');

	local $ENV{PGOPTIONS} = "-c limitledger.grouped=$grouped";
	IPC::Run::run([ 'psql', '-XAtq', '-v', "s=$subject", '-v', "begin=$around[0]", '-v', "end=$around[1]", '-v', 'VERBOSITY=verbose',
		'-h', $node->host, '-p', $node->port, '-d', 'postgres', '-f', $file ], '<', \undef, '>', \$out, '2>', \$err);
	my %after = map { my @f = split /\|/; join('|', @f[ 0 .. 3 ]) => $f[4] } split /\n/, $node->safe_psql('postgres', $answers);
	return ($out, $err =~ s/LOCATION:.*\n//gr, join "\n", map { "$_ " . ($after{$_} - ($before{$_} // 0)) } grep { $after{$_} != ($before{$_} // 0) } sort keys %after);
}
my @direct = all_of('same1', 'off', 'BEGIN;', 'COMMIT;');
my @grouped = all_of('same2', 'on', 'BEGIN;', 'ROLLBACK;');
like($direct[0], qr/\Q$_\E/, "the list has an answer $_")
  for qw(ACCEPTED REFUSED|available CONFLICT|request CONFLICT|operation CONFLICT|operation_elsewhere CONFLICT|figures UNKNOWN REFUSED|debt REFUSED|no_policy REFUSED|largest_reservation);
like($direct[1], qr/LL301/, 'and an error');
is($grouped[0], $direct[0], 'the same calls, grouped, get the same answers');
is($grouped[1], $direct[1], 'and the same errors, word for word');
is($grouped[2], $direct[2], 'and are counted the same');
for my $table (
	"budgets: available, reserved, spent, minted, overdraft_issued, debt, frozen_reason FROM limitledger.budgets",
	"reservations: reservation_id, state, reserved_units, actual_units, excess_units, operation_id, priority FROM limitledger.reservations",
	"operations: operation_id, reservation_id, usage_units FROM limitledger.operation")
{
	my ($name, $columns) = split /: /, $table, 2;
	my @rows = map { $node->safe_psql('postgres', "SELECT $columns WHERE subject = '$_' ORDER BY 1, 2") } qw(same1 same2);

	isnt($rows[0], '', "there are $name");
	is($rows[1], $rows[0], "and the same $name");
}

# ---- Many at once ------------------------------------------------------------------------

publish($node, subject => 'many', burst => 2500);
my $life = write_script('life', <<'EOF2');
\set n random(1, 1000000000)
SELECT outcome FROM limitledger.reserve_capacity('many', 'chat', :client_id || '-' || :n, 1, sha256('d')) \gset
SELECT outcome FROM limitledger.start_reservation('many', :client_id || '-' || :n, 'o' || :client_id || '-' || :n);
SELECT outcome FROM limitledger.settle_usage('many', :client_id || '-' || :n, 'o' || :client_id || '-' || :n, 1);
EOF2
my $xids = $node->safe_psql('postgres', 'SELECT txid_current()');
{
	local $ENV{PGOPTIONS} = '-c limitledger.grouped=on';
	my ($code, $output) = bench($node, '-c', 32, '-j', 2, '-t', 100, '-M', 'prepared', '-f', $life);
	is($code, 0, '32 clients go through 3,200 lives, of which the pair can pay 2,500');
}
value_is($node, "SELECT available, reserved, spent FROM limitledger.budgets WHERE subject = 'many'", '0|0|2500', 'as many are admitted, no more');
$xids = $node->safe_psql('postgres', "SELECT txid_current() - $xids");
note "$xids transactions for 8,200 calls that wrote";
cmp_ok($xids, '<', 4000, 'in groups');

# ---- A locked pair ---------------------------------------------------------------------------

my $holder = session($node);
push @sessions, $holder;
$c->query_safe(reserve('held', 'h0'));
$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
asking($c, reserve('held', 'h1'), 'Extension');
my $from = time();
is(apart($other, reserve("free$_", 'f')), 'ACCEPTED|f grouped', "beside a locked pair another is decided") for 1 .. 20;
cmp_ok(time() - $from, '<', 5, 'twenty of them, without delay');
wait_blocked($node, 1);
pass('who wants the locked one waits for it by itself in the end');
is(apart($other, reserve('free', 'f')), 'ACCEPTED|f grouped', 'others go on');
$holder->query_safe('COMMIT');
like(result($c), qr/ACCEPTED\|f/, 'and gets it');
is(apart($c, reserve('held', 'h2')), 'ACCEPTED|f grouped', 'then calls are grouped again');

# A call that was passed by and has left the queue leaves nothing to be tried again.
set("limitledger.worker_linger = '300ms'");
$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
worker_there($other);
send_query($c, reserve('held', 'left'));
wait_blocked($node, 1);
{
	local $PostgreSQL::Test::Utils::timeout_default = 20;
	soon("SELECT NOT EXISTS ($WORKER)", 'a worker that all passed-by calls have left leaves as well');
}
set("limitledger.worker_linger = '10min'");
$holder->query_safe('COMMIT');
like(result($c), qr/ACCEPTED\|f/, 'and the call that left is decided');
worker_there($c);

# A lock that is soon gone is waited out in the queue.
$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
$c->query_safe('BEGIN');
asking($c, reserve('held', 'h3'), 'Extension');
$holder->query_safe('COMMIT');
like(result($c), qr/ACCEPTED\|f/, 'a lock that is soon gone');
is($c->query_safe('SELECT pg_current_xact_id_if_assigned() IS NULL'), 't', 'is waited for in the queue');
$c->query_safe('ROLLBACK');

# Rows that others are making, and rows without their head.
$holder->query_safe($_) for 'BEGIN', reserve('new', 'n1');
asking($c, reserve('new', 'n2'), 'Extension');
is(apart($other, reserve('free', 'g1')), 'ACCEPTED|f grouped', 'a pair that is being made delays no other');
$holder->query_safe('ROLLBACK');
like(result($c), qr/ACCEPTED\|f/, 'and is made by the next one');
$c->query_safe(reserve('op', 'p1'));
$holder->query_safe($_) for 'BEGIN', "SELECT outcome FROM limitledger.start_reservation('op', 'p1', 'o')";
asking($c, "SELECT outcome, state FROM limitledger.release_reservation('op', 'p1')", 'Extension');
is(apart($other, reserve('op', 'p2')), 'ACCEPTED|f grouped', 'a locked reservation delays no other of its pair');
asking($other, reserve('op', 'p3', 1, ", start_operation => 'o'"), 'Extension');
$holder->query_safe('COMMIT');
like(result($c), qr/REFUSED\|STARTED/, 'it is decided once it is free');
like(result($other), qr/CONFLICT\|f/, 'and so is an operation that was being bound');

# ---- A caller that leaves the queue -------------------------------------------------------------

$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
my $leaver = client();
my $pid = asking($leaver, reserve('held', 'q1'), 'Extension');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
my $said = result($leaver);
like($said, qr/canceling statement due to user request/, 'cancelled in the queue');
unlike($said, qr/Ask again/, 'it has taken its call back');
$leaver->query_safe("SET statement_timeout = '300ms'");
send_query($leaver, reserve('held', 'q2'));
like(result($leaver), qr/canceling statement due to statement timeout/, 'timed out in the queue');
my $dying = client();
$pid = asking($dying, reserve('held', 'q3'), 'Extension');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
soon("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)", 'terminated in the queue');
$holder->query_safe('COMMIT');
is(apart($c, reserve('held', 'q4')), 'ACCEPTED|f grouped', 'the pair is free');
is(stored('held', $_), '', "$_ was never decided") for qw(q1 q2 q3);
is(apart($leaver, reserve('held', 'q1')), 'ACCEPTED|f grouped', 'who was cancelled calls again, in a group');

# ---- A worker that is stuck in its commit ----------------------------------------------------------

my $refused = client();
is($refused->query_safe(reserve('many', 'x1')), 'REFUSED|f', 'a full pair');
no_standby();
my @taken = map { client() } 1 .. 3;
my @pids = (asking($taken[0], reserve('s', 't0'), 'Extension'));
stuck();
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pids[0])");
$said = result($taken[0]);
like($said, qr/canceling statement due to user request/, 'cancelled while its call is being decided');
like($said, qr/whether it takes effect is not known/, 'it learns that the outcome is unknown');
like($said, qr/HINT:\s+Ask again by the same id/, 'and what to do');
$from = time();
is($refused->query_safe(reserve('many', 'x2')), 'REFUSED|f', 'who was refused is refused again');
cmp_ok(time() - $from, '<', 0.9, 'without the worker');
asking($taken[0], reserve('s', 't0'), 'transactionid');
pass('asked again it waits for the transaction that decides it');
asking($taken[1], reserve('s1', 't1'), 'SyncRep');
pass('who waits in the queue for too long does its call itself');

# The worker ends there: nobody was told anything, and everybody gets the truth.
my $worker = $node->safe_psql('postgres', $WORKER);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
soon("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $worker)", 'the worker is terminated while it waits');
standby();
like(result($taken[0]), qr/ACCEPTED\|t/, 'the call that was cancelled had taken effect, once');
like(result($taken[1]), qr/ACCEPTED\|f/, 'the other was decided by its session');
worker_there($c);
pass('there is a worker again');

no_standby();
asking($taken[0], reserve('s', 'u0'), 'Extension');
stuck();
$worker = $node->safe_psql('postgres', $WORKER);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($worker)");
usleep(300_000);
value_is($node, "SELECT wait_event FROM pg_stat_activity WHERE pid = $worker", 'SyncRep', 'a cancel does not cut the wait of a worker short');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
soon("SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE query LIKE '%''u0''%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
	'a call whose worker ends in its commit is asked again by its session, which waits for the standby');
standby();
like(result($taken[0]), qr/ACCEPTED\|t/, 'and gets the receipt that stands');
value_is($node, "SELECT count(*), sum(reserved_units) FROM limitledger.reservation WHERE subject IN ('s', 's1')", '3|3', 'each once');
worker_there($c);

# Cancelled after its call was given back, before it woke: what the worker committed stands.
no_standby();
my $asleep = asking($taken[0], reserve('s', 'v0'), 'Extension');
stuck();
kill 'STOP', $asleep;
$worker = $node->safe_psql('postgres', $WORKER);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
soon("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $worker)", 'a worker ends while a caller sleeps');
standby();
$node->safe_psql('postgres', "SELECT pg_cancel_backend($asleep)");
kill 'CONT', $asleep;
like(result($taken[0]), qr/due to user request.*Ask again by the same id/s, 'given back and cancelled: unknown');
is($taken[0]->query_safe(reserve('s', 'v0')), 'ACCEPTED|t', 'and here it had taken effect');
worker_there($c);

# Terminated and timed out while it is being decided; a worker that is killed.
no_standby();
@pids = map { asking($taken[$_], reserve("k$_", 'k'), 'Extension') } 0 .. 0;
stuck();
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pids[0])");
soon("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pids[0])", 'a session is terminated while its call is being decided');
shift @taken;
standby();
soon("SELECT EXISTS (SELECT FROM limitledger.reservation WHERE subject = 'k0')", 'its call stands');
is(apart($c, reserve('k0', 'k')), 'ACCEPTED|t grouped', 'and is a replay to whoever asks');
no_standby();
$taken[0]->query_safe("SET statement_timeout = '700ms'");
send_query($taken[0], reserve('k1', 'k'));
like(result($taken[0]), qr/due to statement timeout.*Ask again by the same id/s, 'timed out while being decided: unknown');
asking($taken[1], reserve('k2', 'k'), 'Extension');
$worker = $node->safe_psql('postgres', $WORKER);
kill 'KILL', $worker;
usleep(500_000);
set_after_crash();
is($node->safe_psql('postgres', reserve('k1', 'k')), 'ACCEPTED|t', 'what was committed before a worker was killed stands');
like($node->safe_psql('postgres', reserve('k2', 'k')), qr/ACCEPTED/, 'what was not can be asked again');
audit_ok($node, 'after that');

# The sessions are gone with the crash.
sub set_after_crash
{
	$node->poll_query_until('postgres', 'SELECT true') or die 'the server did not come back';
	set("synchronous_standby_names = ''");
	$_->{run}->kill_kill for splice @sessions;
	return;
}
$c = client();
$other = client();
worker_there($c);

# ---- A group that fails ------------------------------------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.subject = 'bad' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = 'P0004', DETAIL = 'No.', HINT = 'Never.'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER no BEFORE INSERT ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION no();
SQL
$c->query('\set VERBOSITY verbose');
send_query($c, reserve('bad', 'b'));
like(result($c), qr/ERROR:\s+P0004: not this one\nDETAIL:\s+No\.\nHINT:\s+Never\./, 'an error comes to its caller as it is');
$worker = $node->safe_psql('postgres', $WORKER);
is(apart($other, reserve('good', 'b1')), 'ACCEPTED|f grouped', 'and to nobody else');
$from = time();
send_query($c, reserve('bad', 'b'));
like(result($c), qr/P0004/, 'again');
cmp_ok(time() - $from, '<', 0.9, 'at once');
is(apart($other, reserve('good', 'b2')), 'ACCEPTED|f grouped', 'the worker goes on');
value_is($node, $WORKER, $worker, 'it is the same one');
my $failed = () = slurp_file($node->logfile) =~ /limitledger admission: a group failed: not this one/g;
is($failed, 1, 'and passes the pair by for a while');
$node->safe_psql('postgres', 'DROP TRIGGER no ON limitledger.reservation');

# While a pair is passed by for its fault, a lock on another one is waited out in the queue all the same.
$c->query_safe(reserve('held', 'i0'));
$holder = session($node);
push @sessions, $holder;
$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
$other->query_safe('BEGIN');
asking($other, reserve('held', 'i1'), 'Extension');
$holder->query_safe('COMMIT');
like(result($other), qr/ACCEPTED\|f/, 'beside a pair at fault a locked one');
is($other->query_safe('SELECT pg_current_xact_id_if_assigned() IS NULL'), 't', 'is waited for in the queue');
$other->query_safe('ROLLBACK');

# ---- What one call of a group does to another ----------------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.subject = 'slow' THEN PERFORM pg_catalog.pg_sleep(0.7); END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION no_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.operation_id = 'bad' THEN RAISE EXCEPTION 'not this operation' USING ERRCODE = 'P0004'; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION no_shadow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.subject = 'aab' THEN RAISE EXCEPTION 'not this shadow' USING ERRCODE = 'P0004'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER no_shadow BEFORE INSERT ON limitledger.shadow_budget FOR EACH ROW EXECUTE FUNCTION no_shadow();
CREATE TRIGGER slow BEFORE INSERT ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER no_operation BEFORE INSERT ON limitledger.operation FOR EACH ROW EXECUTE FUNCTION no_operation();
SQL
my $slow = client();
publish($node, subject => '*', route => 'other');
my $in_flight = "SELECT outcome FROM limitledger.reserve_capacity('%s', 'other', 'x', 1, sha256('d'))";

# Units that a call took, and gave back since it is passed by, are refused to nobody.
publish($node, subject => 'scarce', burst => 10);
$holder->query_safe($_) for 'BEGIN', sprintf $in_flight, 'scarce';
together($slow, [ $c, reserve('scarce', 'x', 10) ], [ $other, reserve('scarce', 'y', 10) ]);
result($slow);
usleep(100_000);
$holder->query_safe('COMMIT');
like(result($c), qr/CONFLICT\|f/, 'an id that was in flight elsewhere');
like(result($other), qr/ACCEPTED\|f/, 'its units are refused to nobody');
value_is($node, "SELECT available, reserved FROM limitledger.budgets WHERE (subject, route) = ('scarce', 'chat')", '0|10', 'who asked for them has them');

# A shadow is charged once, however often a call is tried.
my $shadow = shadowed('shadow');
$holder->query_safe($_) for 'BEGIN', sprintf $in_flight, 'shadow';
together($slow, [ $c, reserve('shadow', 'x', 10) ], [ $other, reserve('shadow', 'y', 95) ]);
result($slow);
usleep(150_000);
$holder->query_safe('ROLLBACK');
like(result($c), qr/ACCEPTED\|f/, 'a call that was tried again and again');
like(result($other), qr/REFUSED\|f/, 'and one that was refused beside it');
value_is($node, "SELECT would_admit_admitted, would_reject_admitted FROM limitledger.rollout_status WHERE generation = $shadow", '1|0', 'is one to the shadow');
value_is($node, "SELECT would_admit_refused, would_reject_refused <= 1 FROM limitledger.rollout_status WHERE generation = $shadow", '0|t', 'and so is the other');
value_is($node, "SELECT available, spent FROM limitledger.shadow_budget WHERE generation = $shadow AND route = 'chat'", '40|10', 'whose units it takes once');

# Nor is it for a direct call whose id turns out to be another one's.
my $direct = session($node);
push @sessions, $direct;
$holder->query_safe($_) for 'BEGIN', $in_flight =~ s/%s/shadow/r =~ s/'x'/'z'/r;
send_query($direct, reserve('shadow', 'z', 10));
wait_blocked($node, 1);
$holder->query_safe('COMMIT');
like(result($direct), qr/CONFLICT\|f/, 'a direct call that took nothing');
value_is($node, "SELECT would_admit_admitted, available FROM limitledger.shadow_budget WHERE generation = $shadow AND route = 'chat'",
	'1|40', 'charges no shadow either');

# An operation that can't be bound is the fault of its own pair.
together($slow, [ $c, reserve('aaa', 'x', 1, ", start_operation => 'bad'") ], [ $other, reserve('zzz', 'x') ]);
result($slow);
like(result($c), qr/not this operation/, 'an error while an operation is bound');
like(result($other), qr/ACCEPTED\|f/, 'comes to its caller alone');
is(apart($other, reserve('zzz', 'y')), 'ACCEPTED|f grouped', 'and no innocent pair is passed by');

# So is a shadow that can't be asked.
shadowed('aab');
together($slow, [ $c, reserve('aab', 'x') ], [ $other, reserve('zzz', 's') ]);
result($slow);
like(result($c), qr/not this shadow/, 'an error of a shadow');
like(result($other), qr/ACCEPTED\|f/, 'comes to its caller alone');
is(apart($other, reserve('zzz', 't')), 'ACCEPTED|f grouped', 'and no innocent pair is passed by');

# A call that is being tried when its patience ends is given back as soon as it can be: it
# is tried for 0.7 s at a time, here twice, and then once by its session.
$holder->query_safe($_) for 'BEGIN', $in_flight =~ s/%s/slow/r;
my $patient = asking($c, reserve('slow', 'x'), 'Extension');
wait_blocked($node, 1);
value_is($node, "SELECT waitstart - query_start < interval '2.9s' FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE pid = $patient AND NOT granted",
	't', 'no second second in the queue');
$holder->query_safe('COMMIT');
like(result($c), qr/CONFLICT\|f/, 'and then decided');

# A worker of another manner gives back what it has.
$holder->query_safe($_) for 'BEGIN', "SELECT FROM limitledger.head_budget WHERE subject = 'held' FOR UPDATE";
$c->query_safe('BEGIN');
asking($c, reserve('held', 'manner'), 'Extension');
set('synchronous_commit = remote_apply');
usleep(150_000);
$holder->query_safe('COMMIT');
like(result($c), qr/ACCEPTED\|f/, 'a call whose worker decides by other settings by now');
is($c->query_safe('SELECT pg_current_xact_id_if_assigned() IS NULL'), 'f', 'is made directly');
$c->query_safe('ROLLBACK');
set('synchronous_commit = on');
$node->safe_psql('postgres', 'DROP TRIGGER slow ON limitledger.reservation; DROP TRIGGER no_operation ON limitledger.operation; DROP TRIGGER no_shadow ON limitledger.shadow_budget');
worker_there($c);

# A table that somebody keeps locked: the worker gives up soon, and everybody waits for himself.
$holder->query_safe($_) for 'BEGIN', 'LOCK TABLE limitledger.reservation IN SHARE MODE';
send_query($c, reserve('table', 't1'));
wait_blocked($node, 1);
$holder->query_safe('COMMIT');
like(result($c), qr/ACCEPTED\|f/, 'a locked table is waited for by the session');
$c->query_safe('BEGIN');
$c->query_safe('LOCK TABLE limitledger.reservation IN SHARE MODE');
is($c->query_safe(reserve('table', 't2')), 'ACCEPTED|f', 'and by nobody for himself');
$c->query_safe('COMMIT');

# ---- Who may -------------------------------------------------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
CREATE ROLE nobody LOGIN;
CREATE ROLE tenant LOGIN;
GRANT USAGE ON SCHEMA limitledger TO nobody;
SELECT limitledger.grant_bundle('tenant', 'gateway');
SELECT limitledger.bind_subject('tenant', 'mine');
ALTER ROLE tenant SET limitledger.grouped = on;
ALTER ROLE nobody SET limitledger.grouped = on;
SQL
worker_there($c);
my ($code, $out, $err) = $node->psql('postgres', reserve('mine', 'x'), extra_params => [ '-U', 'nobody' ]);
like($err, qr/permission denied for function reserve_capacity/, 'who may not call is refused');
my $tenant = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'tenant' ]);
push @sessions, $tenant;
is(apart($tenant, reserve('mine', 'm1')), 'ACCEPTED|f grouped', 'a bound login reaches its own subject');
is($tenant->query_safe(reserve('a', 'm1')), 'REFUSED|f', 'and no other');
is($tenant->query_safe("SELECT outcome FROM limitledger.release_reservation('a', 'a1')"), 'UNKNOWN', 'nor what is stored of one');

# ---- DDL ---------------------------------------------------------------------------------------------------

audit_ok($node, 'at the end');
$node->safe_psql('postgres', 'DROP EXTENSION limitledger');
soon("SELECT NOT EXISTS ($WORKER)", 'DROP EXTENSION: the worker leaves');
$node->safe_psql('postgres', 'CREATE EXTENSION limitledger');
publish($node, subject => '*', burst => 1_000_000, largestReservation => 1_000_000);
worker_there($other);
is(apart($other, reserve('again', 'a')), 'ACCEPTED|f grouped', 'and is there for a new one');
$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql('gone', 'CREATE EXTENSION limitledger');
for (1 .. 100)
{
	$node->safe_psql('gone', "$ON; SELECT limitledger.release_reservation('a', 'a')");
	last if $node->safe_psql('gone', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'limitledger admission' AND datname = 'gone'") eq '1';
	usleep(100_000);
}
value_is($node, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'limitledger admission' AND datname = 'gone'", '1', 'another database has a worker of its own');
$from = time();
is($node->psql('postgres', 'DROP DATABASE gone'), 0, 'which leaves for DROP DATABASE');
cmp_ok(time() - $from, '<', 5, 'soon');
set('limitledger.workers = off');
soon("SELECT NOT EXISTS ($WORKER)", 'switched off, it leaves');
is(apart($other, reserve('again', 'b')), 'ACCEPTED|f direct', 'and calls are direct');

# Without the library preloaded the setting is there, and changes nothing.
$_->quit for @sessions;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
my $alone = session($node);
$alone->query_safe($_) for "LOAD 'limitledger'", $ON;
is(apart($alone, reserve('again', 'c')), 'ACCEPTED|f direct', 'not preloaded, calls are direct');
$alone->quit;
$node->stop;
done_testing();
