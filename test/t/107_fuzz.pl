# Whatever is sent as a policy document, as JSON to be digested, as a digest, or as
# the arrays of a batch is answered or refused by an SQLSTATE that stands in the
# manual; the session lives on and the books balance (B1, A5, J2, A2).
#
# Documents are changed by grammar (fields gone, doubled, of another type, at the end
# of their range) and byte by byte; arrays by their lengths, elements and dimensions.
# The seed is fixed, so each run sends the same; LIMITLEDGER_SEED is another one, and
# LIMITLEDGER_SECONDS goes on with more of them for so long.
#
# Fails when: an input ends the session, meets an error that is not of the ledger
# where the input reached the ledger, or gets a receipt that the books do not show.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Encode ();
use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use Limitledger;
use Test::More;
use Time::HiRes qw(time);

use constant CALLS => 1000;    # of each target in one run

# What PostgreSQL itself says of a text that is no value of the argument's type: broken
# JSON or array, bytes or a number out of range, a zero character, nesting too deep.
my %TYPE = map { $_ => 1 } qw(22P02 22P05 22021 22003 2202E 54001);

# What the ledger says, by target.
my %ALLOWED = (
	policy => [qw(LL101 LL201 LL202 LL203 LL204)],
	digest => [qw(LL108)],
	single => [qw(LL101 LL102 LL103 LL104 LL107 LL301)],
	batch  => [qw(LL101 LL102 LL103 LL104 LL105 LL106 LL107)]);

my $seed = $ENV{LIMITLEDGER_SEED} // 1;
my $until = time + ($ENV{LIMITLEDGER_SECONDS} // 0);
my $json = JSON::PP->new->canonical->allow_nonref;
my (%sent, %said, @wrong);

my $node = ledger_node('fuzz');

publish($node, subject => '*', route => 'chat', burst => 1_000_000);
publish($node, subject => '*', route => 'full', burst => 9223372036854775807, maximumOverdraft => 9223372036854775807,
	hardExecutionLimit => 9223372036854775807);
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END;
$$;
SQL

# ---- inputs -----------------------------------------------------------------

sub one { return $_[ int rand @_ ] }

sub value
{
	return one(undef, JSON::PP::true, JSON::PP::false, 0, 1, -1, 1000, 9223372036854775807, '', '*', 'x' x 256, 'x' x 257,
		"\x{e4}\x{20ac}", '1 hour', '-1 hour', '366 days', '367 days', '99999999 years', '1 month', 'PT30S', 'infinity',
		'1e3', '00:00:00.0000001', 'Europe/Berlin', '../UTC', 'sha256:' . 'a' x 64, 'sha256:' . 'A' x 64, [], {}, [[]],
		{ kind => 'none' }, { kind => 'window', quota => 5 }, { kind => 'continuous', units => 1, interval => '1 second' },
		{ length => '1 hour' }, { calendar => 'day', timeZone => 'UTC' }, ['sha256:' . 'b' x 64], ['x'], [(1) x 300]);
}

sub number { return one(qw(0 1 -1 1e0 1.5 1E400 9223372036854775807 9223372036854775808 -9223372036854775808 0.1
	  123456789012345678 1e-400 5e-324 1.7976931348623157e308 9007199254740993 0.30000000000000004 1e21 333333333.33333329)) }

# disturb changes a text byte by byte.
sub disturb
{
	my ($text) = @_;

	for (1 .. 1 + int rand 3)
	{
		my $at = int rand(1 + length $text);
		my $some = 1 + int rand 6;
		my $how = int rand 5;

		if    ($how == 0) { substr $text, $at, ($at + $some > length $text ? 0 : $some), '' }
		elsif ($how == 1) { substr $text, $at, 0, chr one(1 .. 255) }
		elsif ($how == 2) { substr $text, $at, 0, substr $text, int rand(1 + length $text), $some }
		elsif ($how == 3) { substr $text, $at, 0, number() }
		else              { substr $text, $at, 0, one('\\u0000', '\\ud800', '\\ude00\\ud83d', '[[', '{"a":', '"', "\xc3", 'null') }
	}
	return $text;
}

sub document
{
	my %document = (schema => 'admissionBudget.v1', subject => 'f' . int rand 40, route => 'fuzz', region => '*',
		unit => 'tokens', refill => { kind => 'none' }, burst => 1000, epoch => { length => '1 day' },
		estimatorDigests => [], holdTtl => '30 seconds', executionTtl => '10 minutes', hardExecutionLimit => 1_000_000,
		maximumOverdraft => 500, largestReservation => 100, priority => 0, weight => 1, fairnessBudget => 1000,
		retention => '1 day');

	for (1 .. int rand 4)
	{
		my $field = one(sort(keys %document), qw(largestOutstanding emergencyMode emergencyShare shardTtl policyGeneration x));

		if (rand() < 0.2) { delete $document{$field} }
		elsif (rand() < 0.2 && ref $document{$field} eq 'HASH') { $document{$field}{ one(qw(kind units interval quota length calendar timeZone y)) } = value() }
		else { $document{$field} = value() }
	}
	my $text = $json->utf8->encode(\%document);

	$text =~ s/:\d+/':' . number()/e if rand() < 0.2;
	return rand() < 0.3 ? disturb($text) : $text;
}

sub tree
{
	my ($depth) = @_;
	my $kind = $depth > 4 ? 0 : int rand 3;

	return $kind == 0 ? one(number(), number(), $json->utf8->encode(value()), '"\\ud83d\\ude00"', '"\\u001f\\/"')
	  : $kind == 1 ? '[' . join(',', map { tree($depth + 1) } 1 .. int rand 5) . ']'
	  : '{' . join(',', map { $json->utf8->encode(one('a', 'b', "\x{20ac}", "\x{1f600}", "\x{fb33}", '', '1')) . ':' . tree($depth + 1) } 1 .. int rand 5) . '}';
}

# quoted is a literal of these bytes; those that are no UTF-8 come as what they are.
sub quoted
{
	my ($text) = @_;

	return 'NULL' unless defined $text;
	$text =~ s/\0//g;
	return q(E') . ($text =~ s/([\\'])/\\$1/gr =~ s/\n/\\n/gr =~ s/\r/\\r/gr) . q(');
}

sub id       { return one(undef, '', 'x' x 256, 'x' x 257, '*', map { "i$_" } 1 .. 30) }
sub units    { return one(undef, 0, -1, 1, 1, 2, 10, 100, '9223372036854775807', '9223372036854775800', '4611686018427387904') }
sub digest   { return one(undef, 'ab', '\\x', '\\x' . 'ab' x 31, '\\x' . 'ab' x 33, 'sha256:' . 'g' x 64, ('\\x' . 'ab' x 32) x 6, 'sha256:' . sha256_hex('a')) }
sub route    { return one('chat', 'chat', 'full', 'nowhere', '', undef) }
sub subject  { return one('a', 'a', 'b', 'c', id()) }
sub whole    { my ($type, @rest) = @_; return join ', ', map { quoted($_) } @rest }

# array writes n elements of a kind; now and then of another number, or of another shape.
sub array
{
	my ($n, $type, $make) = @_;
	my $shape = rand;

	return "NULL::$type\[]" if $shape < 0.03;
	$n += one(-1, 1) if $shape < 0.06 && $n;
	my $text = 'ARRAY[' . join(', ', map { quoted($make->()) } 1 .. $n) . "]::$type\[]";
	return "ARRAY[$text, $text]" if $shape > 0.98 && $n;
	return quoted('[5:' . (4 + $n) . ']={' . join(',', ('1') x $n) . '}') . "::$type\[]" if $shape > 0.96 && $n;
	return quoted(disturb('{' . join(',', ('1') x $n) . '}')) . "::$type\[]" if $shape > 0.94;
	return $text;
}

my %MAKE = (
	policy => sub { 'limitledger.publish_policy(' . quoted(rand() < 0.01 ? undef : document()) . '::jsonb, ' . one('true', 'false') . ')' },
	digest => sub {
		my $text = rand() < 0.01 ? '[' x 30000 : tree(0);
		'limitledger.request_digest(' . quoted(rand() < 0.3 ? disturb($text) : $text) . '::jsonb)'
	},
	single => sub {
		my %call = (
			reserve_capacity => sub { (subject(), route(), id(), units(), digest()) },
			start_reservation => sub { (subject(), id(), id()) },
			settle_usage => sub { (subject(), id(), id(), units(), digest()) },
			release_reservation => sub { (subject(), id()) },
			record_usage => sub { (subject(), route(), id(), units()) });
		my $name = one(sort keys %call);
		"limitledger.$name(" . join(', ', map { quoted($_) } $call{$name}->()) . ')'
	},
	batch => sub {
		my $n = one(0, 1, 1, 2, 3, 5, 8);
		my %call = (
			reserve_capacity_batch => [[text => \&subject], [text => \&route], [text => \&id], [bigint => \&units], [bytea => \&digest]],
			start_reservation_batch => [[text => \&subject], [text => \&id], [text => \&id]],
			settle_usage_batch => [[text => \&subject], [text => \&id], [text => \&id], [bigint => \&units], [bytea => \&digest]],
			release_reservation_batch => [[text => \&subject], [text => \&id]],
			record_usage_batch => [[text => \&subject], [text => \&route], [text => \&id], [bigint => \&units]],
			import_usage_batch => [[text => \&subject], [text => \&route], [text => \&id], [bigint => \&units]]);
		my $name = one(sort keys %call);
		# most elements are sound, or a batch would never get past its arguments
		my $sound = rand() < 0.7;
		my %good = (text => sub { one('a', 'b', map { "i$_" } 1 .. 30) }, bigint => sub { one(1 .. 20, 9223372036854775807) }, bytea => sub { '\\x' . 'ab' x 32 });
		"limitledger.$name(" . join(', ', map {
			my ($type, $make) = @$_;
			$make = $make == \&route ? sub { one('chat', 'full') } : $good{$type} if $sound;
			array($n, $type, $make)
		} @{ $call{$name} }) . ')'
	});

# ---- calls --------------------------------------------------------------------

# Each target is one session: the count of answers says whether it lived to the end.
sub run_target
{
	my ($target) = @_;
	my @inputs = map { $MAKE{$target}->() } 1 .. CALLS;
	my %allowed = map { $_ => 1 } 'done', @{ $ALLOWED{$target} };
	my $script = "SET client_min_messages = warning;\n"
	  . join '', map { 'SELECT try($try$SELECT * FROM ' . "$_\$try\$);\n" } @inputs;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/fuzz.sql";
	open my $out, '>:raw', $file or die "$file: $!";
	print $out map { utf8::is_utf8($_) ? Encode::encode_utf8($_) : $_ } $script;
	close $out;
	# a statement that the server can't even read is answered by psql's own line
	my $result = `psql -XAtq -v VERBOSITY=sqlstate -h '@{[$node->host]}' -p @{[$node->port]} -d postgres -f '$file' 2>&1`;
	my @answers = map { /^psql:.*ERROR:\s+(\w{5})/ ? $1 : $_ } grep { /^(?:done|\w{5})$|ERROR: / } split /\n/, $result;

	push @wrong, "$target: " . @answers . ' answers to ' . @inputs if @answers != @inputs;
	for my $i (0 .. $#answers)
	{
		$sent{$target}++;
		$said{$target}{ $answers[$i] }++;
		push @wrong, "$target: $answers[$i] for $inputs[$i]" unless $allowed{ $answers[$i] } || $TYPE{ $answers[$i] };
	}
	return;
}

do
{
	note "seed $seed";
	srand $seed++;
	run_target($_) for sort keys %MAKE;
} while (time < $until);

for my $target (sort keys %MAKE)
{
	my $answers = $said{$target};
	my @missing = grep { !$answers->{$_} } 'done', grep { !/LL106/ } @{ $ALLOWED{$target} };

	note "$target: $sent{$target} inputs: " . join ', ', map { "$_ $answers->{$_}" } sort keys %$answers;
	is("@missing", '', "$target: the inputs reach every answer that they can get");
}
is(join("\n", map { substr $_, 0, 600 } @wrong[0 .. ($#wrong < 9 ? $#wrong : 9)]), '', 'nothing else is answered, and no session ends');
audit_ok($node, 'whatever was sent');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
unlike($log, qr/PANIC|server process .* was terminated|runtime error:|AddressSanitizer/, 'the server tells of no fault');

done_testing();
