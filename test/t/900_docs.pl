# The documentation says what the database says: states, answers, errors, settings,
# functions, columns; its statements run, and its examples print what they show.
#
# A table that is compared stands below a line like <!-- table: outcomes -->.  Columns
# of that name must hold what the database holds, row by row; others are free text.
# Tables of one name in one file are read as one.  A block of SQL is run as it is; a
# plain block right below it is what psql prints.  <!-- clock: INSTANT --> stops the
# ledger's clock for the blocks that follow, so that what they print does not change.
#
# Fails when: a row, a column, a default, a comment or an example is changed on one
# side only, or a public function, argument or view is not documented.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use JSON::PP ();
use Limitledger;
use Test::More;

chdir "$FindBin::RealBin/../.." or die $!;

my @FILES = ('README.md', sort glob 'docs/*.md clients/*.md');
my %TEXT = map { $_ => slurp($_) } @FILES;
my $node = ledger_node('docs');

# What is public: every routine but triggers and the steps inside calls about policies, bindings and envelopes.
my $PUBLIC = <<'SQL';
SELECT p.oid, p.proname, p.prokind, coalesce(p.proargmodes, array_fill('i'::"char", ARRAY[p.pronargs])) AS modes,
       p.proargnames AS names, coalesce(p.proallargtypes, p.proargtypes::oid[]) AS types,
       pg_get_function_arguments(p.oid) AS arguments
FROM pg_proc p
WHERE p.pronamespace = 'limitledger'::regnamespace AND p.prorettype <> 'trigger'::regtype
  AND (p.proname !~ '^(policy|binding|envelope|recovery|local)_' OR p.proname IN ('policy_diff', 'recovery_status'))
  AND p.proname NOT IN ('open_emergency_shard', 'seal_emergency_shard', 'seal_shard_report')
SQL
my @ROUTINES = map { routine($_) } rows("$PUBLIC ORDER BY p.proname");
my %ROUTINE = map { $_->{name} => $_ } @ROUTINES;
my @VIEWS = map { $_->{name} } rows(q(SELECT relname AS name FROM pg_class
  WHERE relnamespace = 'limitledger'::regnamespace AND relkind = 'v' ORDER BY relname));
my @RECEIPT = @{ $ROUTINE{reserve_capacity}{out} };

compare_tables();
check_comments();
check_rules();
check_links();
run_statements();

$node->stop;
done_testing();

# ---- what the database says --------------------------------------------------

# rows returns what a query returns, as hashes of texts, in its order.
sub rows
{
	my ($query) = @_;
	my $json = $node->safe_psql('postgres', <<"SQL");
LOAD 'limitledger';
SELECT coalesce(json_agg(to_json(q)), '[]') FROM ($query) q
SQL
	return @{ JSON::PP->new->decode($json) };
}

# routine takes a row of pg_proc apart: arguments and columns, each with its type.
sub routine
{
	my ($row) = @_;
	my %type = map { $_->{oid} => $_->{name} } rows(sprintf 'SELECT oid, format_type(oid, NULL) AS name FROM pg_type WHERE oid IN (%s)',
		join ',', 0, @{ $row->{types} // [] });
	my %default = $row->{arguments} =~ s/\b(?:INOUT|IN|OUT) //gr =~ /(\w+) [\w\[\] ]+ DEFAULT (NULL|'[^']*'|\w+)/g;
	my $in = $row->{prokind} eq 'p' ? qr/i/ : qr/[ib]/;    # what a procedure returns is not passed
	my (@in, @out);

	for my $i (0 .. $#{ $row->{modes} })
	{
		my $name = $row->{names}[$i];
		my %one = (name => $name, type => short($type{ $row->{types}[$i] }));

		push @in, { argument => $name, type => $one{type}, default => $default{$name} } if $row->{modes}[$i] =~ $in;
		push @out, { column => $name, type => $one{type} } if $row->{modes}[$i] =~ /[otb]/;
	}
	my $signature = join ', ', map { "$_->{argument} $_->{type}" . (defined $_->{default} ? " DEFAULT $_->{default}" : '') } @in;
	return { name => $row->{proname}, in => \@in, out => \@out, function => "$row->{proname}($signature)" };
}

sub short
{
	my ($type) = @_;

	return $type =~ s/timestamp with time zone/timestamptz/r;
}

# first_sentence of a comment, which is also its line in the table of functions.
sub first_sentence
{
	my ($comment) = @_;

	return ($comment // '') =~ /^(.*?\.)(?:\s|$)/s ? $1 : '';
}

# truth returns what a table of that name must hold.
sub truth
{
	my ($name) = @_;
	my ($kind, $of) = split / /, $name;
	my %query = (
		transitions => 'SELECT * FROM limitledger.transitions()',
		outcomes => 'SELECT * FROM limitledger.outcomes()',
		sqlstates => 'SELECT sqlstate, meaning FROM limitledger.sqlstates()',
		settings => q(SELECT name AS setting, vartype AS type, boot_val AS "default", context AS "who"
		              FROM pg_settings WHERE name LIKE 'limitledger.%' ORDER BY name));

	return rows($query{$kind}) if $query{$kind};
	return map { { function => $_->{function}, summary => first_sentence(comment_of("'limitledger.$_->{name}'::regproc", 'pg_proc')) } } @ROUTINES
	  if $kind eq 'functions';
	return @RECEIPT if $kind eq 'receipt';
	return @{ $ROUTINE{$of}{in} } if $kind eq 'arguments' && $ROUTINE{$of};
	return @{ $ROUTINE{$of}{out} } if $kind eq 'columns' && $ROUTINE{$of};
	return map { $_->{type} = short($_->{type}); $_ } rows(qq(SELECT attname AS column, format_type(atttypid, NULL) AS type FROM pg_attribute
	  WHERE attrelid = 'limitledger.$of'::regclass AND attnum > 0 ORDER BY attnum)) if $kind eq 'view' && grep { $_ eq $of } @VIEWS;
	die "no table is called $name\n";
}

sub comment_of
{
	my ($object, $catalog) = @_;

	return (rows("SELECT obj_description($object, '$catalog') AS comment"))[0]{comment};
}

# must_have lists the tables that no reader may miss.
sub must_have
{
	my %shown = map { $_ => 1 } (receipt_key(\@RECEIPT), receipt_key([ { column => 'element', type => 'integer' }, @RECEIPT ]));

	return qw(transitions outcomes sqlstates settings functions receipt),
	  (map { "arguments $_->{name}" } grep { @{ $_->{in} } } @ROUTINES),
	  (map { "columns $_->{name}" } grep { @{ $_->{out} } && !$shown{ receipt_key($_->{out}) } } @ROUTINES),
	  (map { "view $_" } @VIEWS);
}

sub receipt_key
{
	my ($columns) = @_;

	return join ',', map { "$_->{column} $_->{type}" } @$columns;
}

# ---- what the documents say ---------------------------------------------------

sub slurp
{
	my ($path) = @_;
	open(my $in, '<', $path) or die "$path: $!";
	local $/;
	return scalar <$in>;
}

# cells splits a row of a table; an empty cell is NULL.
sub cells
{
	my ($line) = @_;
	my @cells = split /(?<!\\)\|/, $line =~ s/^\s*\|//r =~ s/\|\s*$//r, -1;

	return map { my $cell = s/^\s+|\s+$|`//gr =~ s/\\\|/|/gr; length $cell ? $cell : undef } @cells;
}

# tables_of returns name => [header, row, ...] for the compared tables of one file.
sub tables_of
{
	my ($file) = @_;
	my %tables;

	while ($TEXT{$file} =~ /<!-- table: ([\w ]+?) -->\n+((?:\|.*\n)+)/g)
	{
		my ($name, @lines) = ($1, split /\n/, $2);
		my @header = cells($lines[0]);

		push @{ $tables{$name}{rows} }, map { my %row; @row{@header} = cells($_); \%row } @lines[ 2 .. $#lines ];
		$tables{$name}{header} = \@header;
	}
	my $markers = () = $TEXT{$file} =~ /<!-- table: /g;
	my $found = () = $TEXT{$file} =~ /<!-- table: [\w ]+? -->\n+\|/g;
	is($found, $markers, "$file: below each mark there is a table");
	return %tables;
}

# as_lines shows the rows of a table in the columns that the database knows.
sub as_lines
{
	my ($columns, @rows) = @_;

	return map { my $row = $_; join ' | ', map { $row->{$_} // '' } @$columns } @rows;
}

sub compare_tables
{
	my %seen;

	for my $file (@FILES)
	{
		my %tables = tables_of($file);

		for my $name (sort keys %tables)
		{
			my @truth = truth($name);
			my %known = map { %$_ } @truth;
			my @columns = grep { exists $known{$_} } @{ $tables{$name}{header} };
			my @said = as_lines(\@columns, @{ $tables{$name}{rows} });
			my @true = as_lines(\@columns, @truth);

			is(scalar @columns, scalar keys %known, "$file: table $name has the columns of the database")
			  or diag("they are: @{[sort keys %known]}");
			@$_ = sort @$_ for $name eq 'functions' ? (\@said, \@true) : ();
			is(join("\n", @said), join("\n", @true), "$file: table $name holds what the database holds");
			$seen{$name} = 1;
		}
	}
	ok($seen{$_}, "documented: $_") for must_have();
	return;
}

sub check_comments
{
	for my $routine (@ROUTINES)
	{
		isnt(first_sentence(comment_of("'limitledger.$routine->{name}'::regproc", 'pg_proc')), '',
			"$routine->{name} has a comment");
	}
	isnt(first_sentence(comment_of("'limitledger.$_'::regclass", 'pg_class')), '', "$_ has a comment") for @VIEWS;
	return;
}

# Every rule that anybody cites is there, once, and in order.
sub check_rules
{
	my @rules = $TEXT{'docs/rules.md'} =~ /^### ([A-J]\d+) /mg;
	my %there = map { $_ => 1 } @rules;
	my @ordered = sort { my ($x, $m, $y, $n) = map { /(.)(\d+)/ } $a, $b; $x cmp $y || $m <=> $n } keys %there;
	my %cited = map { $_->{rule} => 1 } rows('SELECT rule FROM limitledger.transitions() UNION SELECT rule FROM limitledger.outcomes()');
	my @sources = grep { -f && !/limitledger--/ } glob('src/*.[ch] src/*/*.[ch] sql/*.sql test/*/*.* demo/run README.md docs/*.md');

	for my $path (@sources)
	{
		my $text = slurp($path);

		$cited{$_} = 1 for map { /[A-J]\d+/g } $text =~ /\(([A-J]\d{1,2}(?:(?:, | and | |-)[A-J]\d{1,2})*)\)/g;
	}
	is("@rules", "@ordered", 'the rules stand in order, each once');
	cmp_ok(scalar keys %cited, '>', 30, 'rules are cited');
	is(join(' ', grep { !$there{$_} } sort keys %cited), '', 'every rule that is cited exists');
	return;
}

# Every link leads to a file, and to a heading of it.
sub check_links
{
	for my $file (@FILES, 'CHANGELOG.md')
	{
		my ($folder) = $file =~ m{^(.*/)?};
		my @missing;

		for my $link (($TEXT{$file} // slurp($file)) =~ /\]\((?!https?:)([^)]+)\)/g)
		{
			my ($path, $anchor) = split /#/, $link, 2;
			my $target = $path eq '' ? $file : normal(($folder // '') . $path);

			push @missing, $link if !-e $target || defined $anchor && !grep { $_ eq $anchor } anchors(slurp($target));
		}
		is("@missing", '', "$file: what it links to is there");
	}
	return;
}

sub normal
{
	my ($path) = @_;

	1 while $path =~ s{[^/]+/\.\./}{};
	return $path;
}

# anchors returns what a page calls its headings in links.
sub anchors
{
	my ($text) = @_;

	return map { lc =~ s/[^\w\- ]//gr =~ s/ /-/gr } $text =~ /^#+ (.*)$/mg;
}

# ---- what the statements do -----------------------------------------------------

# run_statements runs every block of SQL of the documents, in one database.
sub run_statements
{
	my $examples = 0;

	$node->safe_psql('postgres', q(CREATE DATABASE docs TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'));
	for my $file (@FILES)
	{
		my $clock = '';
		my $number = 0;

		while ($TEXT{$file} =~ /<!-- clock: (.*?) -->|^```sql\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg)
		{
			my ($instant, $sql, $shown) = ($1, $2, $3);

			if (defined $instant) { $clock = $instant; next }
			$number++;
			my ($code, $printed) = psql_prints($clock, $sql);
			if (!defined $shown)
			{
				is($code, 0, "$file: block $number runs") or diag($printed);
				next;
			}
			$examples++;
			is($printed, trimmed($shown), "$file: block $number prints what is shown");
		}
	}
	cmp_ok($examples, '>', 8, 'there are examples');
	publish_documents();
	is($node->safe_psql('docs', 'SELECT * FROM limitledger.verify_conservation()'), '', 'and their books balance');
	return;
}

# publish_documents publishes every policy document that is shown as JSON.
sub publish_documents
{
	my @documents = map { $TEXT{$_} =~ /^```json\n(.*?)^```/msg } @FILES;

	cmp_ok(scalar @documents, '>', 0, 'there is a policy document');
	for my $document (@documents)
	{
		my ($code, $printed) = psql_prints('', "SELECT FROM limitledger.publish_policy(\$\$$document\$\$)");

		is($code, 0, 'it can be published') or diag($printed);
	}
	return;
}

sub psql_prints
{
	my ($clock, $sql) = @_;
	my $printed = '';

	local @ENV{qw(PGTZ PGCLIENTENCODING)} = qw(UTC UTF8);
	local $ENV{PGOPTIONS} = $clock eq '' ? '' : '-c limitledger.clock_override=' . $clock =~ s/ /\\ /gr;
	IPC::Run::run([ 'psql', '-X', '-P', 'footer=off', '-P', 'pager=off', '-h', $node->host, '-p', $node->port, '-d', 'docs', '-c', $sql ],
		'<', \undef, '>', \$printed, '2>&1');
	my $code = $? >> 8;
	return ($code, trimmed($printed));
}

# trimmed takes blanks from the end of lines, and empty lines from the end of a text.
sub trimmed
{
	my ($text) = @_;

	return $text =~ s/[ \t]+$//mgr =~ s/\n+\z//r;
}
