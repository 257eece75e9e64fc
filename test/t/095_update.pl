# ALTER EXTENSION UPDATE from every released version, with data, gives what a fresh
# install gives, and loses nothing (J5).
#
# A released version is a script in sql/released, frozen as it was, and a ledger in
# test/released, as its own library left it: a later one may refuse its tables.  To
# freeze one is to copy the built script there, and to run this test once with
# LIMITLEDGER_FREEZE=1; from then on its fragments change only together with the version.  The last part makes up a version, and proves that each statement that
# its upgrade script may lack would be missed.
#
# Fails when: an upgrade script leaves an object out, or another order of columns,
# loses rows or grants, or the library lacks a function that an older script names.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use File::Basename qw(basename dirname);
use IPC::Run ();
use Life;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

chdir "$FindBin::RealBin/../.." or die $!;

my ($CURRENT) = slurp_file('limitledger.control') =~ /^default_version = '(.*)'$/m;
my %RELEASED = version_files('sql/released');
my %PG = map { chomp(my $path = `pg_config --$_`); ($_ => $path) } qw(bindir pkglibdir sharedir);
my $number = 0;

# A version that is made up has this before its update, and gets the rest by it.
my @BEFORE = (<<'SQL', <<'SQL');
CREATE TABLE @extschema@.made_up (id bigint PRIMARY KEY, first text);
SELECT pg_catalog.pg_extension_config_dump('@extschema@.made_up', '');
SQL
CREATE FUNCTION @extschema@.made_up_before() RETURNS int LANGUAGE sql AS 'SELECT 1';
SQL
my @UPGRADE = (
	'ALTER TABLE @extschema@.made_up ADD COLUMN second text COLLATE "C" NOT NULL DEFAULT \'\'',
	'ALTER TABLE @extschema@.made_up ADD COLUMN third bigint',
	'ALTER TABLE @extschema@.made_up SET (fillfactor = 60)',
	'ALTER TABLE @extschema@.made_up ADD CONSTRAINT third_sign CHECK (third >= 0)',
	'CREATE INDEX made_up_third ON @extschema@.made_up (third)',
	'CREATE TRIGGER guard BEFORE UPDATE ON @extschema@.made_up FOR EACH ROW EXECUTE FUNCTION @extschema@.guard_bound()',
	'ALTER TABLE @extschema@.made_up ENABLE ALWAYS TRIGGER guard',
	'SELECT pg_catalog.pg_extension_config_dump(\'@extschema@.made_up\', \'WHERE id > 0\')',
	'CREATE VIEW @extschema@.made_ups AS SELECT id, third FROM @extschema@.made_up',
	'COMMENT ON VIEW @extschema@.made_ups IS \'made up\'',
	'CREATE OR REPLACE FUNCTION @extschema@.made_up_before() RETURNS int LANGUAGE sql STABLE AS \'SELECT 2\'',
	'CREATE FUNCTION @extschema@.made_up_after(a int DEFAULT 1, OUT b int) LANGUAGE sql SET search_path = pg_catalog AS \'SELECT 1\'',
	'REVOKE ALL ON FUNCTION @extschema@.made_up_after(int) FROM PUBLIC',
	'COMMENT ON COLUMN @extschema@.made_up.third IS \'made up\'',
	'CREATE SEQUENCE @extschema@.made_up_numbers CACHE 7');

freeze() if $ENV{LIMITLEDGER_FREEZE};
releases_are_frozen();
my $node = ledger_node('update');
updates($node, $_) for grep { $_ ne $CURRENT } sort keys %RELEASED;
updated_by_another($node);
$node->stop;
prove();
done_testing();

# ---- released versions ---------------------------------------------------------

sub releases_are_frozen
{
	my @released = grep { $_ ne '' } map { /^## (\d+\.\d+)\.\d+(.*)/ && $2 !~ /not released/ ? $1 : '' }
	  split /\n/, slurp_file('CHANGELOG.md');

	ok($RELEASED{$_}, "released and frozen: $_") for @released;
	for my $version (sort keys %RELEASED)
	{
		my $present = $version eq $CURRENT ? "sql/limitledger--$version.sql" : "$PG{sharedir}/extension/" . basename($RELEASED{$version});

		ok(slurp_file($present) eq slurp_file($RELEASED{$version}), "$version: $present is as it was released");
	}
	return;
}

# freeze keeps a ledger of the present version.
sub freeze
{
	my $on = ledger_node('freeze');

	fill_ledger($on, 'postgres');
	my $instant = $on->safe_psql('postgres', q(SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00')));
	my $rows = join "\n", grep { !/^(?:--|$|SET |\\(?:un)?restrict|SELECT pg_catalog.set_config)/ }
	  split /\n/, `PGOPTIONS='-c timezone=UTC' pg_dump -a -d '@{[ $on->connstr('postgres') ]}'`;
	write_file("$PostgreSQL::Test::Utils::tmp_check/$CURRENT.sql", "-- A ledger of version $CURRENT, as its own library left it at $instant:\n"
		  . "-- one item of every kind.  See test/t/095_update.pl.\n$rows\n");
	diag "put this into test/released: $PostgreSQL::Test::Utils::tmp_check/$CURRENT.sql";
	$on->stop;
	return;
}

# updates asserts all of it for one version; `more` fills what its ledger has beside.
sub updates
{
	my ($on, $from, $more) = @_;

	is($on->psql('postgres', symbols_of(slurp_file($RELEASED{$from}))), 0, "$from: the library has what its script names");

	my ($database, $fresh) = ledger_of($on, $from);
	my $ledger = "test/released/$from.sql";
	my $own_library = !-e $ledger;
	my $session;
	if ($own_library)
	{
		fill_ledger($on, $database, $more);
		$session = session($on, $database);
		is($session->query_safe('SELECT generation FROM ' . known_call()), '1', "$from: a session uses it");
	}
	else
	{
		load_ledger($on, $database, $ledger);
		$session = session($on, $database);
		my (undef, undef, $error) = $on->psql($database, 'SELECT FROM ' . known_call());
		like($error, qr/^psql:<stdin>:1: ERROR:  limitledger's /, "$from: until it is updated, the library refuses its tables");
	}
	my $dump = "$PostgreSQL::Test::Utils::tmp_check/$from.dump";
	$on->command_ok([ 'pg_dump', '-d', $on->connstr($database), '-Fc', '-f', $dump ], "$from: it is dumped");
	my %columns = columns_of($on, $database);
	my $contents = contents($on, $database, %columns);

	$on->safe_psql($database, 'ALTER EXTENSION limitledger UPDATE');
	same_catalogue([ catalogue($on, $database) ], [ catalogue($on, $fresh) ], "$from: updated, it is as if freshly installed");
	is(contents($on, $database, %columns), $contents, "$from: updated, its tables hold what they held");
	is($session->query_safe('SELECT generation FROM ' . known_call()), '1', "$from: updated, the session goes on");
	$session->quit;
	fill_since($on, $database, $from) unless $own_library;
	is($on->safe_psql($database, 'SELECT * FROM limitledger.verify_conservation()'), '', "$from: updated, the books balance");
	finish_ledger($on, $database);

	my $restored = 'restored' . ++$number;
	$on->safe_psql('postgres', "CREATE DATABASE $restored TEMPLATE template0");
	$on->command_ok([ 'pg_restore', '--exit-on-error', '-d', $on->connstr($restored), $dump ], "$from: its dump is restored into the present version");
	is(contents($on, $restored, %columns), $contents, "$from: restored, the tables hold what they held");
	if (!$own_library)
	{
		load_ledger($on, $restored, $ledger);
		fill_since($on, $restored, $from);
	}
	finish_ledger($on, $restored);
	return;
}

# Who updates need not be the owner, and the owner no superuser any more.
sub updated_by_another
{
	my ($on) = @_;
	my $others = <<'SQL';
SELECT coalesce(string_agg(pg_describe_object(d.classid, d.objid, 0), ', '), 'nothing') FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid
LEFT JOIN pg_proc p ON (d.classid, d.objid) = ('pg_proc'::regclass, p.oid) LEFT JOIN pg_class c ON (d.classid, d.objid) = ('pg_class'::regclass, c.oid)
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'limitledger' AND coalesce(p.proowner, c.relowner) <> 'keeper'::regrole
SQL
	my $files = "SELECT array_agg(pg_relation_filenode(oid) ORDER BY relname) FROM pg_class WHERE relnamespace = 'limitledger'::regnamespace
		AND relname IN ('policy', 'head_budget', 'closed_budget', 'reservation', 'operation')";

	$on->safe_psql('postgres', $_) for 'CREATE ROLE keeper SUPERUSER', 'CREATE DATABASE kept OWNER keeper';
	$on->safe_psql('kept', "SET ROLE keeper; CREATE EXTENSION limitledger VERSION '0.1'; ALTER ROLE keeper NOSUPERUSER");
	my $before = $on->safe_psql('kept', $files);
	$on->safe_psql('kept', 'ALTER EXTENSION limitledger UPDATE');
	is($on->safe_psql('kept', $others), 'nothing', 'what an update brings belongs to the owner, whoever updates');
	is($on->safe_psql('kept', $files), $before, 'and no table was rewritten');
	is($on->safe_psql('kept', 'SET SESSION AUTHORIZATION keeper; SELECT count(*) FROM limitledger.verify_subjects()'), '0', 'the owner audits');
	return;
}

sub known_call
{
	return "limitledger.reserve_capacity('open', 'chat', 'r1', 100, sha256('d'))";
}

# ledger_of makes two databases, with one version and with the one that is installed
# without asking.
sub ledger_of
{
	my ($on, $from) = @_;
	my ($database, $fresh) = ('from' . ++$number, "fresh$number");

	$on->safe_psql('postgres', "CREATE DATABASE $_") for $database, $fresh;
	$on->safe_psql($database, "CREATE EXTENSION limitledger VERSION '$from'");
	$on->safe_psql($fresh, 'CREATE EXTENSION limitledger');
	return ($database, $fresh);
}

# symbols_of declares every C function that a script names; PostgreSQL looks for each.
sub symbols_of
{
	my ($script) = @_;
	my %symbols = map { $_ => 1 } $script =~ /'MODULE_PATHNAME',\s*'(\w+)'/g;

	die 'no symbol in it' unless %symbols;
	return join "\n", map { "CREATE FUNCTION pg_temp.$_() RETURNS void LANGUAGE C AS '\$libdir/limitledger', '$_';" } sort keys %symbols;
}

# ---- a version that is made up ---------------------------------------------------

# copy_of_postgres makes an installation that looks for its extensions in a folder of
# the test: programs find what they need beside themselves.
sub copy_of_postgres
{
	my $top = PostgreSQL::Test::Utils::tempdir('pgcopy');
	my ($bin, $lib, $share) = map { "$top$PG{$_}" } qw(bindir pkglibdir sharedir);

	system_or_bail('mkdir', '-p', dirname($bin), dirname($lib), "$share/extension");
	system_or_bail('cp', '-aL', $PG{bindir}, $bin);
	symlink $PG{pkglibdir}, $lib or die $! unless -e $lib;
	for my $entry (grep { basename($_) ne 'extension' } glob "$PG{sharedir}/*")
	{
		symlink $entry, "$share/" . basename($entry) or die $! unless -e "$share/" . basename($entry);
	}
	symlink $_, "$share/extension/" . basename($_) or die $! for grep { !/limitledger/ } glob "$PG{sharedir}/extension/*";
	return (dirname($bin), "$share/extension");
}

sub write_file
{
	my ($path, $text) = @_;

	open(my $out, '>', $path) or die "$path: $!";
	print $out $text;
	close($out) or die "$path: $!";
	return;
}

sub prove
{
	my ($install, $folder) = copy_of_postgres();
	my $script = slurp_file("$PG{sharedir}/extension/limitledger--$CURRENT.sql");
	my $way = "$folder/limitledger--$CURRENT--made.up.sql";
	my $statements = sub { join '', map { "$_;\n" } @_ };

	write_file("$folder/limitledger.control", slurp_file("$PG{sharedir}/extension/limitledger.control") =~ s/^default_version = .*/default_version = 'made.up'/mr);
	write_file("$folder/limitledger--$CURRENT.sql", join '', $script, @BEFORE);
	write_file("$folder/limitledger--made.up.sql", join '', $script, @BEFORE, $statements->(@UPGRADE));
	write_file($way, $statements->(@UPGRADE));

	my $made = PostgreSQL::Test::Cluster->new('made_up', install_path => $install);
	$made->init;
	$made->start;
	my $row = 'INSERT INTO limitledger.made_up (id) VALUES (1)';
	local $RELEASED{$CURRENT} = "$folder/limitledger--$CURRENT.sql";
	updates($made, $CURRENT, $row);

	# Whatever the upgrade script lacks is seen.
	my ($database, $fresh) = ledger_of($made, $CURRENT);
	my @expected = catalogue($made, $fresh);
	is(scalar(grep { /made_up/ } @expected) > @UPGRADE, 1, 'the version that is made up has something to compare');
	my $differences = sub {
		write_file($way, $statements->(@_));
		my @got = eval { catalogue($made, $database, 'ALTER EXTENSION limitledger UPDATE') };
		return @got ? differences(\@got, \@expected) : "it ends in an error: $@";
	};
	is(join("\n", $differences->(@UPGRADE)), '', 'a whole upgrade script leaves nothing out');
	my $seen = sub { my ($name, @script) = @_; isnt(join("\n", $differences->(@script)), '', "$name is seen") };
	$seen->("one without this: $UPGRADE[$_]", @UPGRADE[ 0 .. $_ - 1, $_ + 1 .. $#UPGRADE ]) for 0 .. $#UPGRADE;
	$seen->('another order of columns', @UPGRADE[ 1, 0, 2 .. $#UPGRADE ]);
	$seen->('a grant more', @UPGRADE, 'GRANT SELECT ON @extschema@.made_ups TO PUBLIC');
	$seen->('a function more', @UPGRADE, 'CREATE FUNCTION @extschema@.more() RETURNS int LANGUAGE sql AS \'SELECT 1\'');
	$seen->('a setting of a table more', @UPGRADE, 'ALTER TABLE @extschema@.head_budget SET (autovacuum_enabled = false)');
	$seen->('another table to be dumped', @UPGRADE, 'SELECT pg_catalog.pg_extension_config_dump(\'@extschema@.reservation\', \'WHERE false\')');

	# And so is what it does to rows.
	fill_ledger($made, $fresh, $row);
	my $contents = contents($made, $fresh);
	$made->safe_psql($fresh, q(SET session_replication_role = replica; UPDATE limitledger.capacity_grant SET reason = 'other'));
	isnt(contents($made, $fresh), $contents, 'a row that is changed is seen');
	is($made->psql('postgres', symbols_of("'MODULE_PATHNAME', 'limitledger_no_such_function'")), 3, 'a function that the library lacks is seen');

	# A library of another version than the tables refuses them.
	$made->safe_psql($fresh, 'ALTER TABLE limitledger.operation ADD COLUMN of_another_version int');
	my (undef, undef, $error) = $made->psql($fresh, "SELECT FROM limitledger.record_usage('run', 'chat', 'o9', 1)");
	like($error, qr/"operation" has other columns than its library knows/, 'tables of another version are refused');
	is($made->safe_psql($fresh, 'SELECT * FROM limitledger.verify_conservation()'), '', 'and nothing was written');
	$made->stop;
	return;
}
