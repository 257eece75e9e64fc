# Policies change under the feet of sessions that have them in their caches: a publish
# blocks no call, the next call goes by what is committed, and what is rolled back
# never ruled (B5, F3).
#
# Fails when: a call takes a lock on policy that a publish excludes, news is read
# before the pair's lock only or never, or a generation that was rolled back stays in
# a cache.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('policy_change');
my ($one, $two, $three) = map { session($node) } 1 .. 3;
my $number = 0;

# What a call would wait for is an error instead.
$_->query_safe("SET lock_timeout = '2s'") for $one, $two;

# reserve takes one unit and tells under which generation and cap.
sub reserve
{
	my ($subject) = @_;

	$number++;
	return "SELECT outcome, generation, cap FROM limitledger.reserve_capacity('$subject', 'chat', 'r$number', 1, sha256('d'))";
}

sub document
{
	my ($subject, $burst) = @_;

	return <<"SQL" =~ s/\n/ /gr;
'{"schema": "admissionBudget.v1", "subject": "$subject", "route": "chat", "region": "*", "unit": "tokens",
 "refill": {"kind": "none"}, "burst": $burst, "epoch": {"length": "1 day"}, "estimatorDigests": [],
 "largestReservation": 100, "holdTtl": "1 hour", "executionTtl": "1 hour", "hardExecutionLimit": 1000,
 "maximumOverdraft": 500, "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "1 day"}'
SQL
}

sub publish_in
{
	my ($session, $subject, $burst, $activate) = @_;

	$activate //= 'true';
	return $session->query_safe(
		'SELECT generation FROM limitledger.publish_policy(' . document($subject, $burst) . ", $activate)");
}

is(publish_in($three, '*', 1000), '1', 'generation 1');
is($_->query_safe(reserve('t1')), 'ACCEPTED|1|1000', 'it is in the cache of each session') for $one, $two, $three;
$one->query_safe(
	"SELECT FROM limitledger.reserve_capacity('t1', 'chat', '$_', 1, sha256('d'))") for 'started', 'released';

# A publish that is not committed yet.
$three->query_safe('BEGIN');
is(publish_in($three, '*', 2000), '2', 'generation 2, in an open transaction');
is($three->query_safe(reserve('own')), 'ACCEPTED|2|2000', 'it rules in that transaction');
is($one->query_safe(reserve('t1')), 'ACCEPTED|1|1000', 'elsewhere a reserve goes by generation 1');
is($one->query_safe(reserve('new')), 'ACCEPTED|1|1000', 'so does the first of a pair');
is($one->query_safe("SELECT outcome FROM limitledger.start_reservation('t1', 'started', 'o')"), 'ACCEPTED', 'a start does not wait');
is($one->query_safe("SELECT outcome FROM limitledger.settle_usage('t1', 'started', 'o', 0)"), 'ACCEPTED', 'nor a settlement');
is($one->query_safe("SELECT outcome FROM limitledger.release_reservation('t1', 'released')"), 'ACCEPTED', 'nor a release');
is($one->query_safe("SELECT generation FROM limitledger.get_budget('t1', 'chat')"), '1', 'nor a look');
$three->query_safe('COMMIT');
is($_->query_safe(reserve('t1')), 'ACCEPTED|2|2000', 'committed: the next call of each session goes by it')
  for $one, $two, $three;

# One that is rolled back; its number then comes again with other contents.
$three->query_safe('BEGIN');
is(publish_in($three, '*', 3000), '3', 'generation 3');
is($three->query_safe(reserve('t1')), 'ACCEPTED|3|3000', 'it rules in its transaction');
$three->query_safe('ROLLBACK');
is($_->query_safe(reserve('t1')), 'ACCEPTED|2|2000', 'rolled back: nothing has changed') for $three, $two;
is(publish_in($two, '*', 4000), '3', 'generation 3 is another one');
is($_->query_safe(reserve('t1')), 'ACCEPTED|3|4000', 'and that one rules') for $three, $one;

# Published is not active.
is(publish_in($two, '*', 5000, 'false'), '4', 'generation 4, not activated');
is($one->query_safe(reserve('t1')), 'ACCEPTED|3|4000', 'published, it does not rule');
$two->query_safe('SELECT FROM limitledger.activate_policy(4)');
is($one->query_safe(reserve('t1')), 'ACCEPTED|4|5000', 'activated, it does');

# In one transaction, and behind somebody's lock.
$one->query_safe('BEGIN');
is($one->query_safe(reserve('t1')), 'ACCEPTED|4|5000', 'a transaction that has begun under generation 4');
is(publish_in($three, '*', 6000), '5', 'generation 5 does not wait for it');
is($one->query_safe(reserve('t1')), 'ACCEPTED|5|6000', 'its next call goes by generation 5');
$two->query_safe('RESET lock_timeout');
send_query($two, reserve('t1'));
wait_blocked($node, 1);
is(publish_in($three, '*', 7000), '6', 'generation 6 comes while a reserve waits for the pair');
$one->query_safe('COMMIT');
is($two->query_safe('SELECT 1'), "ACCEPTED|6|7000\n1", 'that reserve goes by what is there once it has the lock');

# A pair that slept through several: each has had its budget, in their order.
is($one->query_safe(reserve('new')), 'ACCEPTED|6|7000', 'an idle pair catches up');
value_is($node, <<'SQL', '1|0|1000|2|1|3|2|4|3|5|4|6|5', 'one budget for each generation, each following the one before');
SELECT string_agg(generation || '|' || coalesce(follows_generation, 0) || CASE WHEN generation = 1 THEN '|' || opening ELSE '' END,
  '|' ORDER BY generation) FROM limitledger.budgets WHERE subject = 'new'
SQL
value_is($node, "SELECT opening FROM limitledger.head_budget WHERE subject = 'new'", '999', 'none of them was free capacity');

# A policy of its own takes a subject out of the wildcard.
is(publish_in($three, 't1', 8000), '7', 'generation 7, of one subject');
is($one->query_safe(reserve('t1')), 'ACCEPTED|7|8000', 'it rules that subject');
is($one->query_safe(reserve('new')), 'ACCEPTED|6|7000', 'and no other');

# What a replication worker writes is news too.
$three->query_safe($_) for 'BEGIN', 'SET LOCAL session_replication_role = replica',
  "UPDATE limitledger.policy SET stage = 'draining' WHERE generation = 7", 'COMMIT';
is($one->query_safe("SELECT outcome, dimension FROM limitledger.reserve_capacity('t1', 'chat', 'late', 1, sha256('d'))"),
	'REFUSED|draining', 'a row changed by replication is noticed');

audit_ok($node, 'at the end');
$_->quit for $one, $two, $three;
$node->stop;
done_testing();
