# Life.pm
#	  What the tests of the extension's life share: a ledger that holds one item of
#	  every kind, the proof that each of them can be finished, the contents of all
#	  tables, and the catalogue in a form that two installations can be compared by.

package Life;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Limitledger;
use Test::More;

our @EXPORT = qw(fill_ledger load_ledger fill_since finish_ledger contents columns_of catalogue
  same_catalogue differences version_files);

# A document for psql: :'subject' and so on are its variables.
my $DOCUMENT = <<'SQL';
CREATE FUNCTION pg_temp.document(subject text, cap bigint, refill jsonb DEFAULT '{"kind": "none"}') RETURNS jsonb
LANGUAGE sql AS $$
  SELECT jsonb_build_object('schema', 'admissionBudget.v1', 'subject', subject, 'route', 'chat', 'region', '*',
    'unit', 'tokens', 'refill', refill, 'epoch', '{"length": "1 hour"}'::jsonb, 'estimatorDigests', '[]'::jsonb,
    'largestReservation', 500, 'holdTtl', '30 days', 'executionTtl', '30 days', 'hardExecutionLimit', 800,
    'maximumOverdraft', 300, 'priority', 0, 'weight', 1, 'fairnessBudget', 0, 'retention', '30 days')
    || CASE WHEN refill ->> 'kind' = 'window' THEN '{}' ELSE jsonb_build_object('burst', cap) END
$$;
CREATE FUNCTION pg_temp.ago(ago interval) RETURNS text
LANGUAGE sql AS $$ SELECT set_config('limitledger.clock_override',
  to_char((now() - ago) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US"+00"'), false) $$;
SQL

# One subject for each kind of item; what came before is dated back, so that the
# deadlines of what is to be finished lie ahead.
my $FILL = <<'SQL';
SELECT pg_temp.ago('3 days');
SELECT limitledger.publish_policy(pg_temp.document(s, 1000))
FROM unnest('{open,run,lost,debt,breached,stopped,changed,spent,*}'::text[]) s;
SELECT limitledger.publish_policy(pg_temp.document('window', 1000, '{"kind": "window", "quota": 700}'));
SELECT limitledger.publish_policy(pg_temp.document('due', 1000) || '{"holdTtl": "1 hour"}');
SELECT limitledger.publish_policy(pg_temp.document('refilled', 1000, '{"kind": "continuous", "units": 7, "interval": "1 day"}'));
SELECT limitledger.publish_policy(pg_temp.document('published', 1000), false);
SELECT limitledger.publish_policy(pg_temp.document('retired', 1000));
SELECT limitledger.drain_policy(generation, 'over') FROM limitledger.policies WHERE subject = 'retired';
SELECT limitledger.retire_policy(generation) FROM limitledger.policies WHERE subject = 'retired';

-- in closed budgets, of older epochs and of an older generation
SELECT limitledger.reserve_capacity('window', 'chat', 'r1', 100, sha256('d'), start_operation => 'o1');
SELECT limitledger.reserve_capacity('changed', 'chat', 'r1', 100, sha256('d'), start_operation => 'o1');
SELECT limitledger.reserve_capacity('changed', 'chat', 'r2', 50, sha256('d'));
SELECT limitledger.reserve_capacity('changed', 'chat', 'r3', 10, sha256('d'), start_operation => 'o3');
SELECT limitledger.settle_usage('changed', 'r3', 'o3', 700);
SELECT pg_temp.ago('2 days');
SELECT limitledger.reserve_capacity('window', 'chat', 'r2', 100, sha256('d'), start_operation => 'o2');
SELECT limitledger.publish_policy(pg_temp.document('changed', 2000));
SELECT limitledger.reserve_capacity('changed', 'chat', 'r4', 20, sha256('d'), start_operation => 'o4');

-- holds that ran out: one still RESERVED, one EXPIRING, one EXPIRED
SELECT pg_temp.ago('1 day');
SELECT limitledger.reserve_capacity('due', 'chat', 'expired', 10, sha256('d'));
SELECT pg_temp.ago('20 hours');
SELECT limitledger.expire_reservations();
SELECT limitledger.reserve_capacity('due', 'chat', 'expiring', 20, sha256('d'));
SELECT pg_temp.ago('10 hours');
SELECT limitledger.claim_expiring(10);
SELECT limitledger.reserve_capacity('due', 'chat', 'reserved', 30, sha256('d'));

SELECT pg_temp.ago('2 minutes');
SELECT limitledger.reserve_capacity('open', 'chat', 'r' || n, 100, sha256('d'), priority => n) FROM generate_series(1, 3) n;
SELECT limitledger.extend_reservation('open', 'r1', 'x1', units => 50);
SELECT limitledger.release_reservation('open', 'r3');
SELECT limitledger.resolve_reservation('open', 'fenced', sha256('d'));
SELECT limitledger.reserve_capacity('run', 'chat', 'r1', 100, sha256('d'), start_operation => 'o1');
SELECT limitledger.report_progress('run', 'r1', 'o1', 33);
SELECT limitledger.record_usage('run', 'chat', 'unreserved', 17);
SELECT limitledger.reserve_capacity('lost', 'chat', 'r1', 100, sha256('d'), start_operation => 'o1');
SELECT limitledger.report_usage_unknown('lost', 'r1', 'o1');
SELECT limitledger.reserve_capacity('debt', 'chat', 'r1', 400, sha256('d'), start_operation => 'o1');
SELECT limitledger.reserve_capacity('debt', 'chat', 'r2', 500, sha256('d'), start_operation => 'o2');
SELECT limitledger.settle_usage('debt', 'r2', 'o2', 800, sha256('receipt'));
SELECT limitledger.reserve_capacity('breached', 'chat', 'r1', 500, sha256('d'), start_operation => 'o1');
SELECT limitledger.settle_usage('breached', 'r1', 'o1', 1500);
SELECT limitledger.reserve_capacity('stopped', 'chat', 'r1', 100, sha256('d'));
SELECT limitledger.freeze('stopped', 'chat', 'because');
SELECT limitledger.reserve_capacity('spent', 'chat', 'r1', 500, sha256('d'), start_operation => 'o1');
SELECT limitledger.settle_usage('spent', 'r1', 'o1', 480, NULL, 'executor');
SELECT limitledger.grant_capacity('spent', 'chat', 'g1', 100, 'a gift');
SELECT limitledger.reserve_capacity('somebody', 'chat', 'r1', 5, sha256('d'), start_operation => 'o1');
SELECT limitledger.reserve_capacity('refilled', 'chat', 'r1', 500, sha256('d'), start_operation => 'o1');
SELECT limitledger.settle_usage('refilled', 'r1', 'o1', 500);
SQL

# What only later versions have, by the version that brought it.
my %SINCE = ('0.2' => <<'SQL');
SELECT limitledger.claim_unknown_usage(lease => '1 day', reconciler => 'somebody');
SELECT limitledger.publish_policy(pg_temp.document('*', 1000) || '{"route": "halted"}');
SELECT limitledger.freeze_route('halted', 'because');
SELECT limitledger.publish_policy(pg_temp.document(s, 1000)), limitledger.publish_policy(pg_temp.document(s, 500), false)
FROM unnest('{shadowed,tested}'::text[]) s;
SELECT limitledger.shadow_policy(max(generation), 'a trial') FROM limitledger.policies WHERE subject = 'shadowed';
SELECT limitledger.canary_policy(max(generation), 50, 'a trial', 'pair') FROM limitledger.policies WHERE subject = 'tested';
SELECT limitledger.reserve_capacity('shadowed', 'chat', 'r1', 50, sha256('d'), start_operation => 'o1');
DO $$ BEGIN CREATE ROLE bound LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
SELECT limitledger.bind_subject('bound', 'open');
SELECT limitledger.import_usage('imported', 'chat', 'i1', 250);
SET limitledger.witness_file = :'witness';
SELECT limitledger.acknowledge_recovery('a test');

-- shards: the old limiter's share, which needs no signature; and what a gateway holds
SELECT limitledger.register_gateway('gw', 'limitledger-ed25519-public-v1 gw-1 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo');
SELECT limitledger.publish_policy(pg_temp.document('legacy', 1000));
SELECT limitledger.grant_legacy_share('legacy', 'chat', 'share', 100, 'the switch');
SELECT limitledger.report_legacy_share('legacy', 'share', '{a}', '{40}', '{30}');
SELECT limitledger.open_gateway('gw');
INSERT INTO limitledger.local_shard (subject, shard_id, route, generation, epoch, boot_epoch, fence, allocated_units,
  largest_reservation, hard_execution_limit, hold_ttl, execution_ttl, issued_at, expires_at, accepted_at, local_available, seen_at)
SELECT 'held', 'shard', 'chat', 7, now() - interval '1 hour', g.boot_epoch, 1, 100, 50, 50, '30 days', '30 days',
  now() - interval '1 minute', now() + interval '1 day', now() - interval '1 minute', 100, now() - interval '1 minute'
FROM limitledger.local_gateway g;
SELECT limitledger.shard_reserve('held', 'chat', 'r' || n, 20, sha256('d'), start_operation => 'o' || n) FROM generate_series(1, 2) n;
SELECT limitledger.shard_settle('held', 'r1', 'o1', 5);
SELECT limitledger.cut_shard_report('held', 'shard');
SELECT limitledger.shard_report_unknown('held', 'r2', 'o2');
SELECT limitledger.trust_key('limitledger-ed25519-public-v1 gw.a PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw', 'gw-1');
SELECT limitledger.trust_key('limitledger-ed25519-public-v1 gw.b _FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU', 'gw-1');
SELECT limitledger.distrust_key('gw.b', 'because');
SQL

# witness names a new witness file, for psql.
sub witness
{
	return sprintf q(\set witness '%s/witness'), PostgreSQL::Test::Utils::tempdir();
}

# What is there by state, as fill_ledger leaves it.
my $FILLED = join "\n", 'EXPIRED|1', 'EXPIRING|1', 'RELEASED|2', 'RESERVED|5', 'SETTLED|3', 'SETTLED_WITH_DEBT|2', 'STARTED|8', 'USAGE_UNKNOWN|1';

# fill_ledger puts one item of every kind into an empty ledger, and what else is given.
sub fill_ledger
{
	my ($node, $database, $more) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$node->safe_psql($database, join "\n", "SET timezone = 'UTC';", witness(), $DOCUMENT, $FILL, map({ $SINCE{$_} } sort keys %SINCE), $more // '');
	is_filled($node, $database);
}

# load_ledger puts in such a ledger as an older version's own library left it, and stops
# the database's clock at that instant.
sub load_ledger
{
	my ($node, $database, $file) = @_;
	my ($instant) = PostgreSQL::Test::Utils::slurp_file($file) =~ /^-- .* left it at (\S+ \S+):$/m or die "$file: no instant";

	$node->safe_psql($database, PostgreSQL::Test::Utils::slurp_file($file)) if $database !~ /^restored/;
	$node->safe_psql($database, "ALTER DATABASE $database SET limitledger.clock_override = '$instant'");
}

# fill_since adds what that version did not have.
sub fill_since
{
	my ($node, $database, $version) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$node->safe_psql($database, join "\n", "SET timezone = 'UTC';", witness(), $DOCUMENT, map { $SINCE{$_} } grep { $_ gt $version } sort keys %SINCE);
	is_filled($node, $database);
}

sub is_filled
{
	my ($node, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($node->safe_psql($database, 'SELECT state, count(*) FROM limitledger.reservation GROUP BY 1 ORDER BY 1'),
		$FILLED, "$database: the ledger holds every state");
	is($node->safe_psql($database, q(
		SELECT (SELECT count(DISTINCT stage) FROM limitledger.policy), (SELECT count(*) > 2 FROM limitledger.closed_budget),
		       (SELECT count(*) FROM limitledger.frozen_pairs), (SELECT count(*) FROM limitledger.pairs_in_debt),
		       (SELECT count(*) FROM limitledger.verify_conservation()))),
		'6|t|2|2|0', "$database: policies of every stage, closed budgets, freezes, debts, in balance");
	is(join(' ', contents($node, $database) =~ /^(\w+) 0 /mg), '', "$database: no table is empty");
}

# Each line: what is asked, and what a ledger answers that has lost nothing.
my @FINISH = (
	# what was answered before is answered again
	[ "reserve_capacity('open', 'chat', 'r1', 100, sha256('d'))", 'outcome, state, replayed, reserved_units', 'ACCEPTED|RESERVED|t|150' ],
	[ "reserve_capacity('open', 'chat', 'r1', 101, sha256('d'))", 'outcome, dimension', 'CONFLICT|request' ],
	[ "reserve_capacity('open', 'chat', 'fenced', 1, sha256('d'))", 'outcome, state, replayed', 'ACCEPTED|RELEASED|t' ],
	[ "extend_reservation('open', 'r1', 'x1', units => 50)", 'outcome, replayed, reserved_units', 'ACCEPTED|t|150' ],
	[ "record_usage('run', 'chat', 'unreserved', 17)", 'outcome, replayed', 'ACCEPTED|t' ],
	[ "grant_capacity('spent', 'chat', 'g1', 100, 'a gift')", 'outcome, replayed', 'ACCEPTED|t' ],
	[ "settle_usage('debt', 'r2', 'o2', 800, sha256('receipt'))", 'outcome, replayed, excess_units', 'ACCEPTED|t|300' ],
	# what is open is finished
	[ "start_reservation('open', 'r1', 'o1')", 'outcome, state', 'ACCEPTED|STARTED' ],
	[ "settle_usage('open', 'r1', 'o1', 150)", 'outcome, state, available', 'ACCEPTED|SETTLED|750' ],
	[ "release_reservation('open', 'r2')", 'outcome, state, available', 'ACCEPTED|RELEASED|850' ],
	[ "report_progress('run', 'r1', 'o1', 33)", 'outcome, replayed', 'ACCEPTED|t' ],
	[ "settle_usage('run', 'r1', 'o1', 40)", 'outcome, state, available', 'ACCEPTED|SETTLED|943' ],
	[ 'claim_unknown_usage()', 'count(*)', '0' ],    # somebody has it
	[ "settle_usage('lost', 'r1', 'o1', 60)", 'outcome, state, available', 'ACCEPTED|SETTLED|940' ],
	[ "settle_usage('window', 'r1', 'o1', 100)", 'outcome, state', 'ACCEPTED|SETTLED' ],
	[ "settle_usage('window', 'r2', 'o2', 0)", 'outcome, state, available', 'ACCEPTED|SETTLED|700' ],
	[ "settle_usage('changed', 'r1', 'o1', 90)", 'outcome, state, available', 'ACCEPTED|SETTLED|140' ],
	[ "start_reservation('changed', 'r2', 'o2')", 'outcome, state', 'ACCEPTED|STARTED' ],
	[ "settle_usage('changed', 'r2', 'o2', 50)", 'outcome, state', 'ACCEPTED|SETTLED' ],
	[ "settle_usage('changed', 'r4', 'o4', 20)", 'outcome, state', 'ACCEPTED|SETTLED' ],
	[ "release_reservation('stopped', 'r1')", 'outcome, state', 'ACCEPTED|RELEASED' ],
	[ "settle_usage('somebody', 'r1', 'o1', 5)", 'outcome, state, available', 'ACCEPTED|SETTLED|995' ],
	# what owes or is frozen is opened
	[ "reserve_capacity('debt', 'chat', 'r3', 1, sha256('d'))", 'outcome, dimension', 'REFUSED|debt' ],
	[ "settle_usage('debt', 'r1', 'o1', 200)", 'outcome, state, available', 'ACCEPTED|SETTLED|0' ],
	[ "reserve_capacity('debt', 'chat', 'r3', 1, sha256('d'))", 'outcome, dimension, retry_kind', 'REFUSED|available|release' ],
	[ "unfreeze('breached', 'chat', 'paid')", 'outcome, dimension', 'REFUSED|debt' ],
	[ "grant_capacity('breached', 'chat', 'g1', 600, 'paid')", 'outcome, granted_units, debt', 'ACCEPTED|600|0' ],
	[ "unfreeze('breached', 'chat', 'paid')", 'outcome, admission', 'ACCEPTED|open' ],
	[ "reserve_capacity('breached', 'chat', 'r2', 100, sha256('d'), start_operation => 'o2')", 'outcome, state, available', 'ACCEPTED|STARTED|0' ],
	[ "settle_usage('breached', 'r2', 'o2', 100)", 'outcome, state', 'ACCEPTED|SETTLED' ],
	[ "unfreeze('stopped', 'chat', 'over')", 'outcome, admission, available', 'ACCEPTED|open|1000' ],
	[ "reserve_capacity('somebody', 'halted', 'r2', 1, sha256('d'))", 'outcome, dimension', 'REFUSED|frozen' ],
	[ "unfreeze_route('halted', 'over')", 'outcome', 'ACCEPTED' ],
	[ "reserve_capacity('somebody', 'halted', 'r2', 1, sha256('d'))", 'outcome, available', 'ACCEPTED|999' ],
	[ "release_reservation('somebody', 'r2')", 'outcome, available', 'ACCEPTED|1000' ],
	[ "reserve_capacity('imported', 'chat', 'r1', 500, sha256('d'))", 'outcome, available', 'ACCEPTED|250' ],
	[ "settle_usage('shadowed', 'r1', 'o1', 30)", 'outcome, state, available', 'ACCEPTED|SETTLED|970' ],
	[ 'subject_bindings', 'role_name, subject, state', 'bound|open|bound' ],
	[ "release_reservation('imported', 'r1')", 'outcome, available', 'ACCEPTED|750' ],
	[ "import_usage('imported', 'chat', 'i1', 250)", 'outcome, replayed', 'ACCEPTED|t' ],
	# what is in shards comes back as ever
	[ "grant_legacy_share('legacy', 'chat', 'share', 100, 'the switch')", 'outcome, replayed, available', 'ACCEPTED|t|910' ],
	[ "report_legacy_share('legacy', 'share', '{a}', '{40}', '{30}')", 'outcome, replayed', 'ACCEPTED|t' ],
	# but not into what may be a copy (G7)
	[ "report_legacy_share('legacy', 'share', '{b}', '{60}', '{55}')",
		"CASE WHEN (SELECT status FROM limitledger.recovery_status()) = 'quarantined' THEN concat_ws(' ', outcome, dimension) = 'REFUSED recovery'"
		  . " ELSE concat_ws(' ', outcome, reminted_units, settled, available) = 'ACCEPTED 5 t 915' END", 't' ],
	[ "shard_reserve('held', 'chat', 'r1', 20, sha256('d'))", 'outcome, state, replayed', 'ACCEPTED|SETTLED|t' ],
	[ "shard_settle('held', 'r1', 'o1', 5)", 'outcome, replayed', 'ACCEPTED|t' ],
	[ "shard_settle('held', 'r2', 'o2', 10)", 'outcome, state', 'ACCEPTED|SETTLED' ],
	[ "seal_shard('held', 'shard')", 'outcome', 'ACCEPTED' ],
	[ 'local_shards', 'local_spent, local_retired, sealed_at IS NOT NULL', '15|85|t' ]);

# finish_ledger ends every open item of such a ledger, goes on with the next
# generation, and leaves nothing held.
sub finish_ledger
{
	my ($node, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $ask = sub { $node->safe_psql($database, $_[0]) };
	my $is = sub { my ($query, $expected, $name) = @_; is($ask->($query), $expected, "$database: $name") };

	$is->("SELECT $_->[1] FROM limitledger.$_->[0]", $_->[2], $_->[0]) for @FINISH;
	like($ask->('CALL limitledger.maintain()'), qr/^1\|2\|0\|/, "$database: what was due is expired");
	$is->("SELECT string_agg(state, ' ') FROM limitledger.reservations WHERE subject = 'due'",
		'EXPIRED EXPIRED EXPIRED', 'each hold that ran out');
	$is->("SELECT available, outstanding FROM limitledger.get_budget('due', 'chat')", '1000|0', 'its units are back');
	$is->('SELECT count(*) FROM limitledger.open_reservations', '0', 'nothing is held');

	my $top = $ask->('SELECT max(generation) FROM limitledger.policies');
	$is->("$DOCUMENT SELECT generation, already_published FROM limitledger.publish_policy(pg_temp.document('*', 1000) || '{\"route\": \"halted\"}')",
		$ask->("SELECT generation FROM limitledger.policies WHERE route = 'halted'") . '|t', 'a publish that is repeated');
	$is->("$DOCUMENT SELECT generation FROM limitledger.publish_policy(pg_temp.document('open', 900))", $top + 1,
		'the next generation');
	$is->("SELECT outcome, generation, available FROM limitledger.reserve_capacity('open', 'chat', 'next', 50, sha256('d'))",
		'ACCEPTED|' . ($top + 1) . '|800', 'it admits, with what was used still used');
	$is->("SELECT outcome FROM limitledger.release_reservation('open', 'next')", 'ACCEPTED', 'and takes back');
	$is->('SELECT * FROM limitledger.verify_conservation()', '', 'the books balance in the end');
}

# columns_of returns table => its columns, for every table of the extension.
sub columns_of
{
	my ($node, $database) = @_;

	return map { split /\|/ } split /\n/, $node->safe_psql($database, <<'SQL');
SELECT c.relname || '|' || string_agg(quote_ident(a.attname), ',' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind = 'r' GROUP BY c.relname
SQL
}

# contents counts and hashes each table, in the columns of the given list, by
# default all.
sub contents
{
	my ($node, $database, %columns) = @_;

	%columns = columns_of($node, $database) unless %columns;
	my $each = join ' UNION ALL ', map { <<"SQL" } sort keys %columns;
SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text COLLATE "C")), '')
FROM (SELECT $columns{$_} FROM limitledger.$_) t
SQL
	return $node->safe_psql($database, "SET timezone = 'UTC'; SET datestyle = 'ISO'; $each");
}

# ---- the catalogue ---------------------------------------------------------

# Each query lists one kind of fact about the members of the extension as lines of
# text without numbers of the catalogue.  Owners are left out: whoever creates an
# extension owns it.  Columns of tables come with their number, since the library
# finds them by it; those of views by their place.
my $MEMBERS = <<'SQL';
WITH member AS (
  SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
  WHERE e.extname = 'limitledger' AND d.deptype = 'e'),
relation AS (
  SELECT c.* FROM pg_class c JOIN member m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid),
routine AS (
  SELECT p.* FROM pg_proc p JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid),
-- indexes, constraints and triggers belong to their table, not to the extension
part AS (
  SELECT 'pg_class'::regclass AS classid, i.indexrelid AS objid FROM pg_index i JOIN relation r ON r.oid = i.indrelid
  UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint k JOIN relation r ON r.oid = k.conrelid
  UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid)
SQL
my %FACTS = (
	extension => q(SELECT concat_ws(' ', e.extname, e.extversion, e.extrelocatable, e.extnamespace::regnamespace) FROM pg_extension e WHERE e.extname = 'limitledger'),
	member => q(SELECT pg_describe_object(classid, objid, 0) FROM member),
	dumped => q(SELECT concat_ws(' ', t.config::regclass, 'WHERE', t.condition)
		FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS t (config, condition) WHERE e.extname = 'limitledger'),
	relation => q(SELECT concat_ws(' ', relname, relkind, relpersistence, relreplident, array_to_string(ARRAY(SELECT unnest(reloptions) ORDER BY 1), ','),
		(SELECT amname FROM pg_am a WHERE a.oid = relam), 'rls', relrowsecurity, relforcerowsecurity) FROM relation),
	column => q(SELECT concat_ws(' ', r.relname, CASE r.relkind WHEN 'r' THEN a.attnum ELSE rank() OVER (PARTITION BY r.oid ORDER BY a.attnum) END,
		a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
		'COLLATE ' || (SELECT collname FROM pg_collation k WHERE k.oid = a.attcollation),
		'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'storage', a.attstorage, a.attcompression, 'statistics', a.attstattarget,
		array_to_string(ARRAY(SELECT o FROM unnest(a.attoptions) o WHERE o NOT LIKE 'pg_attver=%' ORDER BY 1), ','), 'identity', a.attidentity, 'generated', a.attgenerated, array_to_string(a.attacl, ','))
		FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum WHERE r.relkind <> 'S'),
	constraint => q(SELECT concat_ws(' ', k.conrelid::regclass, k.conname, k.convalidated, k.connoinherit, pg_get_constraintdef(k.oid))
		FROM pg_constraint k JOIN relation r ON r.oid = k.conrelid),
	index => q(SELECT concat_ws(' ', pg_get_indexdef(i.indexrelid), i.indisprimary, i.indisvalid, i.indisclustered, i.indisreplident)
		FROM pg_index i JOIN relation r ON r.oid = i.indrelid),
	trigger => q(SELECT concat_ws(' ', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled)
		FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal),
	view => q(SELECT concat_ws(' ', relname, pg_get_viewdef(oid)) FROM relation WHERE relkind = 'v'),
	statistics => q(SELECT pg_get_statisticsobjdef(s.oid) FROM pg_statistic_ext s JOIN relation r ON r.oid = s.stxrelid),
	policy => q(SELECT concat_ws(' ', polrelid::regclass, polname, polcmd) FROM pg_policy p JOIN relation r ON r.oid = p.polrelid),
	sequence => q(SELECT concat_ws(' ', seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle)
		FROM pg_sequence s JOIN relation r ON r.oid = s.seqrelid),
	routine => q(SELECT concat_ws(' ', pg_get_functiondef(oid), pg_get_function_result(oid)) FROM routine WHERE prokind <> 'a'),
	library => q(SELECT concat_ws(' ', proname, probin, prosrc) FROM routine WHERE probin IS NOT NULL),
	comment => q(SELECT pg_describe_object(d.classoid, d.objoid, d.objsubid) || ': ' || d.description
		FROM pg_description d JOIN (SELECT * FROM member UNION ALL SELECT * FROM part
		  UNION ALL SELECT 'pg_extension'::regclass, oid FROM pg_extension WHERE extname = 'limitledger') m
		ON m.classid = d.classoid AND m.objid = d.objoid),
	# the owner's own are left out: stored or not, they are the same
	privilege => grants('acl'),
	# what the install script granted, which pg_dump takes for given
	initial => grants('initial'));

sub grants
{
	my ($which) = @_;

	return qq(SELECT concat_ws(' ', a.kind, a.name, CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type, x.is_grantable)
		FROM (SELECT 'relation', r.oid::regclass::text, r.relowner, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner), r.relacl, i.initprivs
		      FROM relation r LEFT JOIN pg_init_privs i ON i.classoid = 'pg_class'::regclass AND i.objoid = r.oid AND i.objsubid = 0
		      UNION ALL SELECT 'routine', p.oid::regprocedure::text, p.proowner, acldefault('f', p.proowner), p.proacl, i.initprivs
		      FROM routine p LEFT JOIN pg_init_privs i ON i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid
		      UNION ALL SELECT 'schema', nspname, nspowner, acldefault('n', nspowner), nspacl, NULL FROM pg_namespace WHERE nspname = 'limitledger'
		     ) a (kind, name, owner, standard, acl, initial),
		     aclexplode(coalesce(a.$which, a.standard)) x WHERE x.grantee <> a.owner);
}

# catalogue describes an installed extension, one fact a line, sorted.  It knows the
# kinds of objects that there are and dies of another, so that none is overlooked.
# What is done before, in SQL, is rolled back.
sub catalogue
{
	my ($node, $database, $before) = @_;
	my $begin = defined $before ? "BEGIN; $before;" : '';
	my $unknown = $node->safe_psql($database, <<"SQL");
$begin $MEMBERS SELECT DISTINCT classid::regclass::text FROM member WHERE classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass)
UNION ALL SELECT relkind::text FROM relation WHERE relkind NOT IN ('r', 'v', 'S')
UNION ALL SELECT prokind::text FROM routine WHERE prokind NOT IN ('f', 'p')
SQL
	die "tell the catalogue how to compare these kinds of members: $unknown" if $unknown ne '';

	my $all = join "\nUNION ALL ", map { "SELECT '$_', fact FROM ($FACTS{$_}) q (fact)" } sort keys %FACTS;
	my $json = $node->safe_psql($database, <<"SQL");
$begin SET search_path = pg_catalog;
$MEMBERS SELECT json_agg(kind || ': ' || fact ORDER BY kind || ': ' || fact COLLATE "C") FROM ($all) f (kind, fact)
SQL
	return @{ JSON::PP->new->utf8->decode($json) };
}

# differences lists the facts that only one of two catalogues has.
sub differences
{
	my ($got, $expected) = @_;
	my (%got, %expected);

	@got{@$got} = ();
	@expected{@$expected} = ();
	return (map { "not expected: $_" } grep { !exists $expected{$_} } @$got), map { "missing: $_" } grep { !exists $got{$_} } @$expected;
}

# same_catalogue asserts that there are none.
sub same_catalogue
{
	my ($got, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @differences = differences($got, $expected);

	is(scalar @differences, 0, $name) or diag(join "\n", @differences > 20 ? (@differences[ 0 .. 19 ], '...') : @differences);
}

# version_files returns version => path of the install scripts in a folder.
sub version_files
{
	my ($folder) = @_;

	return map { m{/limitledger--([^/-]+)\.sql$} ? ($1 => $_) : () } glob "$folder/limitledger--*.sql";
}

1;
