# Housekeeping against use: sweeps, maintenance and the end of epochs run in loops
# while clients reserve, settle, release and forget.  None of it makes a hold without
# an end or a budget with a fresh opening, so no capacity comes out of nowhere, and
# no client meets an error of a row that was just taken away (B5, C1, D14, D15).
#
# Fails when: a budget is opened anew instead of following the one before it, or an
# epoch that ends takes calls with it that were on their way.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;
use Time::HiRes qw(usleep);

use constant SECONDS => 10;

my $node = ledger_node('housekeeping', 'log_statement = none', 'deadlock_timeout = 100ms');

# Epochs of a second, holds that run out at once, and nothing worth keeping for long.
my %policy = (epoch => { length => '1 second' }, holdTtl => '40 milliseconds', executionTtl => '1 hour',
	retention => '100 milliseconds', largestReservation => 100);
publish($node, %policy, subject => 'none', burst => 100_000);
publish($node, %policy, subject => 'window', refill => { kind => 'window', quota => 3000 }, burst => undef);
publish($node, %policy, subject => '*', burst => 10_000);
$node->safe_psql('postgres', 'CREATE TABLE told (subject text, outcome text, units bigint)');

# use is a client: it spends, gives back, or forgets what it holds.
sub use_of
{
	my ($name, $subject) = @_;
	my $id = "'$name-' || :client_id || '-' || :round";

	return write_script($name, <<"SQL");
\\set round :round + 1
\\set n random(1, 60)
\\set dice random(1, 10)
\\if :dice <= 5
SELECT outcome FROM limitledger.reserve_capacity($subject, 'chat', $id, 5, sha256('d'));
SELECT outcome FROM limitledger.release_reservation($subject, $id);
\\elif :dice <= 9
SELECT outcome FROM limitledger.reserve_capacity($subject, 'chat', $id, 5, sha256('d'), start_operation => $id);
INSERT INTO told SELECT $subject, s.outcome, s.actual_units
FROM limitledger.settle_usage_batch(ARRAY[$subject], ARRAY[$id], ARRAY[$id], ARRAY[2]) s;
\\else
SELECT outcome FROM limitledger.reserve_capacity($subject, 'chat', $id, 5, sha256('d'));
\\endif
SQL
}

my @housekeepers = map { bench_start($node, '-c', 1, '-T', 300, '-f', $_) } (
	write_script('maintain', "CALL limitledger.maintain(50, '1 second');\n"),
	write_script('sweep', "SELECT * FROM limitledger.expire_reservations(20);\n"),
	write_script('claim', "SELECT * FROM limitledger.claim_expiring(5);\nSELECT * FROM limitledger.finish_expiring(5);\n"));
my @clients = map { bench_start($node, '-c', 2, '-j', 1, '-T', SECONDS, '-f', $_) }
  (use_of('none', "'none'"), use_of('window', "'window'"), use_of('idle', "'idle-' || :n"));

ok($_->finish, 'a client met no error') for @clients;
ok($_->pumpable, 'nor did housekeeping') for @housekeepers;
$_->kill_kill for @housekeepers;
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'bench'")
  or die 'the housekeepers did not end';
usleep(50_000) until $node->safe_psql('postgres', <<'SQL') =~ /^0$/m;
CALL limitledger.maintain() \g /dev/null
SELECT count(*) FROM limitledger.reservation WHERE state IN ('RESERVED', 'EXPIRING')
SQL
audit_ok($node, 'after it');

value_is($node, "SELECT count(*) FROM limitledger.reservation WHERE expires_at IS NULL OR NOT isfinite(expires_at)",
	'0', 'every reservation has an end');
value_is($node, 'SELECT count(*) FROM limitledger.reservation WHERE state NOT IN (\'SETTLED\', \'RELEASED\', \'EXPIRED\')',
	'0', 'and has come to it');
value_is($node, <<'SQL', '0', 'no epoch of a pair has two budgets');
SELECT count(*) FROM (SELECT FROM limitledger.budgets GROUP BY subject, route, generation, epoch HAVING count(*) > 1) b
SQL
cmp_ok($node->safe_psql('postgres', <<'SQL'), '>=', SECONDS - 2, 'many epochs have ended meanwhile');
SELECT extract(epoch FROM b.epoch - p.active_at)::int FROM limitledger.head_budget b JOIN limitledger.policy p USING (generation) WHERE b.subject = 'none'
SQL
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE follows_purged) FROM limitledger.budgets WHERE subject IN ('none', 'window')"), '>=', 2,
	'and their budgets were purged');

# Nothing refills these: what is not spent is there, through all epochs, and no more.
value_is($node, <<'SQL', '0', 'where nothing refills, what is left and what was told as spent is the one opening');
SELECT count(*)
FROM limitledger.head_budget b JOIN limitledger.policy p USING (generation)
WHERE b.subject <> 'window'
  AND b.available <> p.cap - (SELECT coalesce(sum(t.units), 0) FROM told t WHERE t.subject = b.subject AND t.outcome = 'ACCEPTED')
SQL
value_is($node, <<'SQL', '0', 'a window opens with its quota, and gives no more than that');
SELECT count(*) FROM limitledger.budgets WHERE subject = 'window' AND (opening <> 3000 OR spent > 3000)
SQL
value_is($node, <<'SQL', 't', 'and what is kept as spent is no more than what was told');
SELECT (SELECT sum(spent) FROM limitledger.budgets) BETWEEN 1 AND (SELECT sum(units) FROM told WHERE outcome = 'ACCEPTED')
SQL
note $node->safe_psql('postgres', 'SELECT subject ~ \'^idle\', outcome, count(*) FROM told GROUP BY 1, 2');

$node->stop;
done_testing();
