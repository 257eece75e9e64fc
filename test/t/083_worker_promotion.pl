# A standby has no worker and writes nothing; its promotion brings them along, and what
# fell due meanwhile is done, with no restart (J4, D14).  And the clock of workers is the
# ledger's: one that jumps makes due what it has passed (A3).
#
# Fails when: a launcher starts on a standby, or is not started by a promotion, or a
# worker waits by another clock than the ledger's.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('worker_primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'limitledger'
limitledger.worker_linger = 0
limitledger.workers = off
CONF
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION limitledger');
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('worker_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'limitledger.workers = on');
$standby->start;

publish($primary, subject => 'h', holdTtl => '1 second');
publish($primary, subject => 'l', holdTtl => '1 hour');
publish($primary, subject => 'x', executionTtl => '1 second');
publish($primary, subject => 'd', refill => { kind => 'continuous', units => 1000, interval => '1 second' }, burst => 100);
$primary->safe_psql('postgres', <<'SQL');
SELECT limitledger.reserve_capacity('h', 'chat', 'r', 10, sha256('d'));
SELECT limitledger.reserve_capacity('l', 'chat', 'r', 10, sha256('d'));
SELECT limitledger.reserve_capacity('x', 'chat', 'r', 10, sha256('d'), start_operation => 'o');
SELECT limitledger.reserve_capacity('d', 'chat', 'r', 100, sha256('d'), start_operation => 'o');
SELECT limitledger.settle_usage('d', 'r', 'o', 400);
SQL
$primary->poll_query_until('postgres', "SELECT count(*) = 2 FROM limitledger.open_reservations WHERE time_left < interval '0'")
  or die 'nothing fell due';
$primary->wait_for_catchup($standby);

my $STATES = "SELECT string_agg(subject || ' ' || state, ', ' ORDER BY subject) FROM limitledger.reservation WHERE subject <> 'd'";
value_is($standby, $STATES, 'h RESERVED, l RESERVED, x STARTED', 'the standby shows what is due');
value_is($standby, "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'", '0', 'and has no worker');
value_is($standby, 'SELECT DISTINCT status FROM limitledger.workers', 'unknown', 'the view can be read');

my $born = $standby->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
$primary->stop;
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT ($STATES) = 'h EXPIRED, l RESERVED, x USAGE_UNKNOWN'"), 'promoted, it does what is due');
ok($standby->poll_query_until('postgres', "SELECT overdraft_repaid > 0 AND debt = 0 FROM limitledger.budgets WHERE subject = 'd'"), 'and repays');
ok($standby->poll_query_until('postgres', "SELECT last_rows = 0 FROM limitledger.workers WHERE job = 'verify_conservation'"), 'and audits');
value_is($standby, 'SELECT pg_postmaster_start_time()', $born, 'with no restart');

# An hour passes at once.
value_is($standby, "SELECT status, next_at > clock_timestamp() + interval '50 minutes' FROM limitledger.workers WHERE job = 'claim_expiring'",
	'away|t', 'the next hold is due in an hour');
my $later = $standby->safe_psql('postgres', q(SET timezone = 'UTC'; SELECT clock_timestamp() + interval '2 hours'));
$standby->safe_psql('postgres', "ALTER SYSTEM SET limitledger.clock_override = '$later'");
$standby->reload;
ok($standby->poll_query_until('postgres', "SELECT ($STATES) = 'h EXPIRED, l EXPIRED, x USAGE_UNKNOWN'"), 'the clock jumps, and it is done');

# And back: a hold of an hour is not due, whatever the server's clock says.
$standby->safe_psql('postgres', q(ALTER SYSTEM SET limitledger.clock_override = '2020-01-01 00:00:00+00'));
$standby->reload;
ok($standby->poll_query_until('postgres', q(SELECT limitledger.ledger_clock() < '2021-01-01')), 'the clock steps back');
value_is($standby, "SELECT outcome FROM limitledger.reserve_capacity('l', 'chat', 'back', 10, sha256('d'))", 'ACCEPTED', 'a hold');
value_is($standby, "SELECT reservation_id, state FROM limitledger.reservation WHERE subject = 'l' ORDER BY 1", "back|RESERVED\nr|EXPIRED", 'stands');
audit_ok($standby, 'at the end');

unlike(slurp_file($standby->logfile), qr/(?:ERROR|WARNING|PANIC):/, 'nothing of it is in the log');
$standby->stop;
done_testing();
