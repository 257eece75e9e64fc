# A hot standby reads and refuses to write, and a new primary goes on at once (F4,
# J4): holds that ran out during the switch end with the next reserve or maintain().
#
# Fails when: a call decides before it looks whether it may write, so that a standby
# answers "not enough", a reader writes or takes a lock that recovery refuses, a
# policy that was published meanwhile stays unseen, or something kept by a session
# from before the promotion keeps it from writing after.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Life;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = ledger_node('primary', 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby_feedback = on');

fill_ledger($primary, 'postgres');
publish($primary, subject => 'late', holdTtl => '2 seconds', executionTtl => '2 seconds');
publish($primary, subject => 'swept', holdTtl => '2 seconds');
$primary->safe_psql('postgres', q(CREATE ROLE gw; SELECT limitledger.grant_bundle('gw', 'gateway')));
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
catch_up();

sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
}

# ---- what a standby answers -----------------------------------------------------

is(contents($standby, 'postgres'), contents($primary, 'postgres'), 'the standby holds the same rows');

# calls returns every public routine of a kind of volatility as a call that a primary
# would not object to before it looks at the ledger.
my %ARGUMENT = (
	subject => "'open'", route => "'chat'", reservation_id => "'r1'", operation_id => "'o1'", digest => "sha256('d')",
	role_name => "'gw'", bundle => "'gateway'", generation => '1', after_subject => "''", after_route => "''", boot_epoch => 'gen_random_uuid()',
	public_key => q('limitledger-ed25519-public-v1 new.a 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'),
	document => q('{"schema": "admissionBudget.v1", "subject": "new", "route": "chat", "region": "*", "unit": "tokens",
	  "refill": {"kind": "none"}, "burst": 10, "epoch": {"length": "1 day"}, "estimatorDigests": [], "largestReservation": 10,
	  "holdTtl": "1 hour", "executionTtl": "1 hour", "hardExecutionLimit": 10, "maximumOverdraft": 0, "priority": 0,
	  "weight": 1, "fairnessBudget": 0, "retention": "1 day"}'));
my %CALL = (    # that would have something to write
	grant_bundle => [ bundle => "'executor'" ],
	bind_subject => [ role_name => "'bound'", subject => "'other'" ]);

sub calls
{
	my ($volatility) = @_;
	my %calls;

	for (split /\n/, $primary->safe_psql('postgres', <<"SQL"))
SELECT p.proname, CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE 'SELECT * FROM ' END || p.oid::regproc,
       (SELECT string_agg(p.proargnames[n] || ' ' || format_type(t, NULL), ',' ORDER BY n)
        FROM unnest(p.proargtypes) WITH ORDINALITY u (t, n) WHERE n <= p.pronargs - p.pronargdefaults)
FROM pg_proc p
WHERE p.pronamespace = 'limitledger'::regnamespace AND p.provolatile $volatility
  AND (p.oid::regprocedure::text IN (SELECT signature FROM limitledger.bundles()) OR p.proname IN ('grant_bundle', 'revoke_bundle'))
SQL
	{
		my ($name, $call, $arguments) = split /\|/, $_, 3;
		my %own = @{ $CALL{$name} // [] };
		my @given = map { my ($argument, $type) = split / /, $_, 2; $own{$argument} // $ARGUMENT{$argument} // any_of($argument, $type) }
		  split /,/, $arguments;

		$calls{$name} = "$call(" . join(', ', @given) . ')';
	}
	return %calls;
}

sub any_of
{
	my ($argument, $type) = @_;

	if ($type =~ /^(.*)\[\]$/)
	{
		my $of = $1;

		return 'ARRAY[' . ($ARGUMENT{ $argument =~ s/s$//r } // any_of($argument, $of)) . ']';
	}
	return "1::$type" if $type =~ /int|numeric/;
	return "'2030-01-01 00:00:00+00'::$type" if $type =~ /^timestamp/;
	return "sha256('x')" if $type eq 'bytea';
	return "'1 hour'::interval" if $type eq 'interval';
	return "'{}'::jsonb" if $type eq 'jsonb';
	return "true" if $type eq 'boolean';
	return "'x'::$type";
}

sub sqlstate
{
	my ($node, $call) = @_;
	my (undef, $out, $err) = $node->psql('postgres', "$call;\n\\echo :SQLSTATE", on_error_stop => 0);

	return $out =~ /(\w{5})\z/ ? $1 : "none: $err";
}

my %writers = calls("= 'v'");
my %readers = calls("<> 'v'");
delete @writers{qw(ledger_clock worker_status count_decisions signing_key_id)};    # which change nothing
$readers{$_} = "SELECT * FROM limitledger.$_"
  for split /\n/, $primary->safe_psql('postgres', q(SELECT relname FROM pg_class WHERE relnamespace = 'limitledger'::regnamespace AND relkind = 'v'));
cmp_ok(scalar keys %writers, '>', 25, 'there are calls that write');
is(sqlstate($standby, $writers{$_}), '25006', "on a standby: $_ is refused as read-only") for sort keys %writers;
like(sqlstate($standby, $readers{$_}), qr/^00000$|^LL106$/, "on a standby: $_ answers") for sort keys %readers;

is(sqlstate($standby, "SELECT * FROM limitledger.reserve_capacity('open', 'chat', 'much', $_, sha256('d'))"), '25006',
	"on a standby: a request for $_ units is refused as read-only") for 1, 500, 501, 1_000_000;
is(sqlstate($standby, "SELECT * FROM limitledger.$_"), '25006', "on a standby: $_")
  for "reserve_capacity('breached', 'chat', 'frozen', 1, sha256('d'))", "reserve_capacity('nobody', 'nowhere', 'none', 1, sha256('d'))",
  "reserve_capacity('open', 'chat', 'r1', 100, sha256('d'))", "reserve_capacity('open', 'chat', 'r1', 100, sha256('other'))",
  "settle_usage('nobody', 'none', 'none', 1)";
is($standby->safe_psql('postgres', "SELECT * FROM limitledger.$_"), $primary->safe_psql('postgres', "SELECT * FROM limitledger.$_"),
	"on a standby: $_ is as on the primary")
  for "verify_conservation()", "get_reservation_document('run', 'r1')", 'policies ORDER BY generation', 'operator_actions';
for my $call ("get_budget('open', 'chat')", "get_budget('changed', 'chat')", "get_budget('breached', 'chat')")
{
	my $figures = "SELECT generation, epoch, available, reserved, spent, debt, outstanding, admission FROM limitledger.$call";

	is($standby->safe_psql('postgres', $figures), $primary->safe_psql('postgres', $figures), "on a standby: $call is as on the primary");
}
is($standby->safe_psql('postgres', "SELECT outcome, state, operation FROM limitledger.get_reservation('run', 'r1')"), 'ACCEPTED|STARTED|o1',
	'on a standby: get_reservation');

# A session of the standby sees what is published meanwhile.
my $session = session($standby);
$session->query_safe("PREPARE budget AS SELECT generation, cap, available FROM limitledger.get_budget('somebody', 'chat')");
$session->query_safe("PREPARE reserve AS SELECT outcome, available FROM limitledger.reserve_capacity('somebody', 'chat', 'p1', 5, sha256('d'))");
like($session->query_safe('EXECUTE budget'), qr/\|1000\|995$/, 'a session of the standby reads');
$session->query('EXECUTE reserve');
like($session->{stderr}, qr/ERROR:  cannot execute .* (?:in a read-only transaction|during recovery)/, 'and is told that it may not write');
$session->{stderr} = '';
publish($primary, subject => '*', burst => 600);
catch_up();
like($session->query_safe('EXECUTE budget'), qr/\|600\|600$/, 'it sees what is published on the primary');

# ---- promotion --------------------------------------------------------------------

# Holds and executions run out while there is no primary.
$primary->safe_psql('postgres', <<'SQL');
SELECT FROM generate_series(1, 100) n, limitledger.reserve_capacity('late', 'chat', 'hold ' || n, 5, sha256('d'));
SELECT FROM generate_series(1, 100) n, limitledger.reserve_capacity('late', 'chat', 'run ' || n, 5, sha256('d'), start_operation => 'o' || n);
SELECT FROM generate_series(1, 200) n, limitledger.reserve_capacity('swept', 'chat', 'hold ' || n, 5, sha256('d'));
SQL
catch_up();
is($standby->safe_psql('postgres', "SELECT available, reserved FROM limitledger.get_budget('late', 'chat')"), '0|1000', 'everything is held');
$primary->stop('immediate');
$standby->poll_query_until('postgres', <<'SQL') or die 'the holds never fell due';
SELECT count(*) = 400 FROM limitledger.open_reservations WHERE subject IN ('late', 'swept') AND time_left < interval '0'
SQL
is($standby->safe_psql('postgres', "SELECT count(*), sum(reserved_units) FROM limitledger.expired_unstarted WHERE subject IN ('late', 'swept')"),
	'300|1500', 'the standby shows what has run out');
my $born = $standby->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
$standby->promote;

is($standby->safe_psql('postgres', "SELECT outcome, available FROM limitledger.reserve_capacity('late', 'chat', 'next', 1, sha256('d'))"),
	'ACCEPTED|499', 'the next reserve of the pair ends its holds, not its executions');
is($standby->safe_psql('postgres', "SELECT state, count(*) FROM limitledger.reservation WHERE subject = 'late' GROUP BY 1 ORDER BY 1"),
	"EXPIRED|100\nRESERVED|1\nSTARTED|100", 'each of them');
like($standby->safe_psql('postgres', 'CALL limitledger.maintain()'), qr/^201\|202\|100\|/, 'maintain ends the others, and says what is unknown');
like($standby->safe_psql('postgres', 'CALL limitledger.maintain()'), qr/^0\|0\|0\|/, 'each once');
is($standby->safe_psql('postgres', "SELECT available, outstanding FROM limitledger.get_budget('swept', 'chat')"), '1000|0', 'their units are back');
is($standby->safe_psql('postgres', <<'SQL'), 'ACCEPTED|SETTLED|100', 'executions that became unknown are settled');
SELECT outcome, state, count(*)
FROM generate_series(1, 100) n, limitledger.settle_usage('late', 'run ' || n, 'o' || n, 5) GROUP BY 1, 2
SQL

is($session->query_safe('EXECUTE reserve'), 'ACCEPTED|595', 'the session from before the promotion writes now');
is($session->query_safe("SELECT outcome, state FROM limitledger.release_reservation('somebody', 'p1')"), 'ACCEPTED|RELEASED', 'on and on');
is($session->query_safe("SELECT outcome, replayed FROM limitledger.reserve_capacity('open', 'chat', 'r1', 100, sha256('d'))"), 'ACCEPTED|t',
	'what the old primary acknowledged is answered again');
is($standby->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $born, 'without a restart');
is($standby->safe_psql('postgres', 'SELECT * FROM limitledger.verify_conservation()'), '', 'the books balance on the new primary');
unlike(slurp_file($standby->logfile), qr/PANIC|LL90\d|terminated by signal/, 'its log tells of nothing broken');

$session->quit;
$standby->stop;
done_testing();
