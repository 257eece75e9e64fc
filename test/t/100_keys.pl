# Keys and envelopes through SQL, on a server that logs all it can (G3): altered envelopes
# are refused, those that jose makes are accepted and those made here it verifies, keys are
# rotated and given up, a key file in the wrong place or of the wrong mode is said to be,
# and the secret key is nowhere but in its file.
#
# Fails when: one altered envelope opens, stock JOSE and this ledger disagree, a key
# signs or counts that should not, or bytes of the secret are in a table, a dump, the log,
# a view, an error or any file of the stopped server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use File::Find ();
use IPC::Run ();
use JSON::PP ();
use Limitledger;
use MIME::Base64 qw(decode_base64url encode_base64 encode_base64url);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/../..";
my $node = ledger_node('keys', q(log_statement = 'all'), q(log_min_messages = 'debug2'), q(log_min_error_statement = 'debug5'),
	'log_duration = on', 'debug_print_parse = on', 'debug_print_rewritten = on', 'debug_print_plan = on', 'log_parameter_max_length = -1',
	'log_parameter_max_length_on_error = -1', 'max_prepared_transactions = 2');
my $folder = $node->basedir . '/keys';
my %key;

mkdir $folder, 0700 or die "$folder: $!";

sub run
{
	my ($in, @command) = @_;
	my ($out, $err);
	my $well = IPC::Run::run(\@command, '<', \$in, '>', \$out, '2>', \$err);

	return ($out, $well, $err);
}

sub spell
{
	my ($path, $bytes, $mode) = @_;

	open(my $out, '>:raw', $path) or die "$path: $!";
	print {$out} $bytes;
	close $out;
	chmod $mode // 0600, $path;
	return $path;
}

# make_key has the tool make one; its file, lines and seed are kept under its id.
sub make_key
{
	my ($kid) = @_;
	my $file = "$folder/$kid.key";
	my ($line, $well, $err) = run('', "$top/tools/make-signing-key", $file, $kid);

	$well or die $err;
	chomp $line;
	my ($seed) = slurp_file($file) =~ / ([\w-]{43})\n\z/ or die "no seed in $file";
	$key{$kid} = { file => $file, line => $line, seed => $seed, public => ($line =~ / ([\w-]{43})\z/)[0] };
	return $line;
}

# signs_with sets the key file for all sessions, those that are open as well.
sub signs_with
{
	my ($file) = @_;

	$node->safe_psql('postgres', qq(LOAD 'limitledger';\nALTER SYSTEM SET limitledger.signing_key_file = '$file';));
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('limitledger.signing_key_file') = '$file'")
	  or die "the setting does not become $file";
	return;
}

sub trust { return $node->safe_psql('postgres', "SELECT outcome FROM limitledger.trust_key('$key{ $_[0] }{line}'" . ($_[1] // '') . ')') }
sub distrust { return $node->safe_psql('postgres', "SELECT outcome FROM limitledger.distrust_key('$_[0]', 'test')") }

# seal signs a shard; problem says what opening one finds.
my $FIELDS = q('shard-7', 'tenant-a', 'chat/gpt', 12, '2026-07-19 00:00+00', 100, 'gw-1', '6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5', 3,
	'2026-07-19 14:00+00', '2026-07-19 14:30+00', '30 seconds', '10 minutes', 5000, 40);
my $SEAL = "SELECT envelope FROM limitledger.seal_emergency_shard($FIELDS)";
my $OPENED = '||shard-7|tenant-a|chat/gpt|12|100|gw-1|3|00:00:30|00:10:00|5000|40';
my $OPEN = 'SELECT problem, member, shard_id, subject, route, generation, allocated_units, gateway, fence, hold_ttl, execution_ttl,
	hard_execution_limit, largest_reservation FROM limitledger.open_emergency_shard';

sub seal { return $node->safe_psql('postgres', $SEAL) }
sub problem { return $node->safe_psql('postgres', "SELECT coalesce(problem, 'sound') FROM limitledger.open_emergency_shard(\$e\$$_[0]\$e\$)") }
sub opened { return $node->safe_psql('postgres', "$OPEN(\$e\$$_[0]\$e\$)") }

# ---- Files that can't be used ---------------------------------------------------------

make_key($_) for qw(centre-1 centre-2 gw-1.a stranger);

# refused asserts LL401 with a word, and that neither the file's bytes nor its path are shown.
sub refused
{
	my ($word, $file, $name) = @_;
	my ($out, $err);

	for my $call ('SELECT * FROM limitledger.signing_key_id()', $SEAL)
	{
		my $code = $node->psql('postgres', "LOAD 'limitledger';\n\\set VERBOSITY verbose\nSET limitledger.signing_key_file = '$file';\n$call",
			stdout => \$out, stderr => \$err, on_error_stop => 0);

		like($err, qr/ERROR:  LL401: .*limitledger\.signing_key_file.*\n.*DETAIL:  $word.*\n.*HINT:  \S/, "$name: $word");
		unlike($err . $out, qr/\Q$folder\E|[\w-]{43}/, "$name: nothing of it is shown");
	}
	return;
}

my $sound = slurp_file($key{'centre-1'}{file});
my $inside = spell($node->data_dir . '/inside.key', $sound);
symlink $key{'centre-1'}{file}, "$folder/symlink.key" or die $!;
link spell("$folder/first.key", $sound), "$folder/second.key" or die $!;
system('mkfifo', '-m', '600', "$folder/pipe.key") == 0 or die 'no pipe';
symlink $node->data_dir, "$folder/way" or die $!;

refused('Without a key', '', 'no file is set');
refused('open: .*No such file', "$folder/missing.key", 'a file that is missing');
refused('open: .*Not a directory', "$key{'centre-1'}{file}/x", 'a file below a file');
refused('symlink: ', "$folder/symlink.key", 'a symbolic link');
refused('kind: ', $folder, 'a folder');
refused('kind: ', "$folder/pipe.key", 'a pipe');
refused('kind: ', '/dev/null', 'a device');
refused('owner: ', '/etc/hostname', 'a file of root') if $> != 0;
refused('mode: ', spell(sprintf('%s/mode-%o.key', $folder, $_), $sound, $_), sprintf('mode %04o', $_)) for 0640, 0604, 0700, 0622, 0660;
refused('linked: ', "$folder/first.key", 'a file with a second name');
refused('inside: ', $inside, 'a file in the data folder');
refused('inside: ', "$folder/way/inside.key", 'by another way');
refused('inside: ', 'inside.key', 'by a short name');
refused('form: ', spell("$folder/form-$_->[0].key", $_->[1]), "a file with $_->[0]")
  for [ 'nothing', '' ], [ 'zeros', "\0" x 200 ], [ 'the public line', "$key{'centre-1'}{line}\n" ], [ 'two lines', $sound x 2 ],
  [ 'half a line', substr($sound, 0, 50) ], [ 'no end', $sound =~ s/\n//r ];
refused('kid: ', spell("$folder/kid.key", $sound =~ s/centre-1/centre*1/r), 'a file with a bad id');
unlink $inside;

# ---- Who may see what ----------------------------------------------------------------

$node->safe_psql('postgres', q(CREATE ROLE op LOGIN; CREATE ROLE aud LOGIN;
SELECT limitledger.grant_bundle('op', 'operator'), limitledger.grant_bundle('aud', 'auditor')));
signs_with($key{'centre-1'}{file});

# as_role returns what a role is answered, an error by its SQLSTATE.  Its first call loads
# the library, and with it the setting.
sub as_role
{
	my ($role, $query) = @_;
	my ($out, $err);

	$node->psql('postgres', "DO 'BEGIN PERFORM limitledger.ledger_clock(); END';\n\\set VERBOSITY sqlstate\n$query", stdout => \$out, stderr => \$err,
		on_error_stop => 0, extra_params => [ '-U', $role ]);
	return join ' ', grep { $_ ne '' } $out, $err =~ /(\w{5})$/ ? $1 : ();
}

is(as_role('op', 'SELECT kid FROM limitledger.signing_key_id()'), 'centre-1', 'an operator asks which key signs');
is(as_role('op', 'SHOW limitledger.signing_key_file'), '42501', 'but not where it is');
is(as_role('op', q(SELECT count(*) FROM pg_settings WHERE name = 'limitledger.signing_key_file')), '0', 'nor in pg_settings');
is(as_role('op', q(SET limitledger.signing_key_file = '/tmp/x')), '42501', 'nor may it set another');
is(as_role('op', $SEAL), '42501', 'and it signs nothing by itself');
is(as_role('op', q(SELECT limitledger.open_emergency_shard('x'))), '42501', 'nor opens');
is(as_role('op', "SELECT outcome FROM limitledger.trust_key('$key{'centre-1'}{line}')"), 'ACCEPTED', 'it trusts keys');
is(as_role('aud', 'SELECT kid, trusted, actor FROM limitledger.trusted_keys'), 'centre-1|t|op', 'an auditor sees which, and who did');
is(as_role('aud', 'SELECT limitledger.signing_key_id()'), '42501', 'and reads no key file');

# ---- What stock JOSE makes and verifies ---------------------------------------------------

# jose signs each payload of a JSON array under its header, or verifies one envelope.
my $JOSE = <<'JS';
const { CompactSign, compactVerify, importJWK } = require('jose');
const [what, x, d] = process.argv.slice(1);
const text = require('fs').readFileSync(0);
(async () => {
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x, ...(d && { d }) }, 'EdDSA');
  if (what === 'verify') {
    const { payload, protectedHeader } = await compactVerify(text.toString(), key, { algorithms: ['EdDSA'] });
    process.stdout.write(`${JSON.stringify(protectedHeader)} ${Buffer.from(payload)}`);
  } else {
    const lines = [];
    for (const [header, payload] of JSON.parse(text))
      lines.push(await new CompactSign(Buffer.from(payload)).setProtectedHeader(header).sign(key));
    process.stdout.write(lines.join('\n'));
  }
})();
JS
$ENV{NODE_PATH} = "/usr/share/nodejs:$top/clients/node/node_modules";
my $json = JSON::PP->new->canonical;

sub jose_verifies
{
	my ($kid, $envelope) = @_;

	return (run($envelope, 'node', '-e', $JOSE, 'verify', $key{$kid}{public}))[0];
}

# jose_signs returns an envelope for each payload, whose header names `named`, made with the key of `kid`.
sub jose_signs
{
	my ($kid, $named, $type, @payloads) = @_;
	my $text = JSON::PP->new->canonical->ascii;    # sorted is the order in which a header has to be
	my $in = $text->encode([ map { my $characters = $_; utf8::decode($characters);
		[ { alg => 'EdDSA', kid => $named, typ => $type }, $characters ] } @payloads ]);
	my ($out, $well, $err) = run($in, 'node', '-e', $JOSE, 'sign', $key{$kid}{public}, $key{$kid}{seed});

	$well or die $err;
	return split /\n/, $out;
}

my $envelope = seal();
my ($header, $payload) = jose_verifies('centre-1', $envelope) =~ /^(\S+) (.*)$/s;

is($header, '{"alg":"EdDSA","kid":"centre-1","typ":"emergencyShard.v1"}', 'jose verifies what is sealed here');
is($payload, $json->encode($json->decode($payload)), 'whose payload is canonical JSON');
is(jose_verifies('stranger', $envelope), '', 'and not with another key');
is((jose_signs('centre-1', 'centre-1', 'emergencyShard.v1', $payload))[0], $envelope, 'jose makes the same');
is(opened($envelope), $OPENED, 'it opens here');
is(opened((jose_signs('centre-1', 'centre-1', 'emergencyShard.v1', $payload =~ s/shard-7/shard-\xC3\xA4/r))[0]), $OPENED =~ s/shard-7/shard-\xC3\xA4/r,
	'and so does what jose makes by itself');

# ---- Altered, re-encoded, with a wrong key ---------------------------------------------------

# Signed by the right key, but in another form than the one: each is refused by its own word.
my %other_form = (
	'with a blank' => [ $payload =~ s/:/: /r, 'instant accountingEpoch' ],
	'with a line end' => [ "$payload\n", 'trailing' ],
	'in another order' => [ $payload =~ s/^\{("accountingEpoch":"[^"]*"),("allocatedUnits":"[^"]*")/{$2,$1/r, 'member_missing accountingEpoch' ],
	'with numbers' => [ $payload =~ s/"100"/100/r, 'number allocatedUnits' ],
	'with an escape' => [ $payload =~ s/tenant-a/tenant-\\u0061/r, 'character subject' ],
	'with a member more' => [ $payload =~ s/^\{/{"a":"1",/r, 'member_unknown' ],
	'with a member twice' => [ $payload =~ s/("fence":"3")/$1,$1/r, 'member_twice fence' ],
	'with a member less' => [ $payload =~ s/"holdTtl":"\d+",//r, 'member_missing holdTtl' ],
	'with an offset' => [ $payload =~ s/14:30:00.000000Z/14:30:00.000000+00:00/r, 'instant expiresAt' ],
	'as an array' => [ "[$payload]", 'syntax' ],
	'as another type' => [ $payload =~ s/emergencyShard.v1/shardReport.v1/r, 'schema schema' ],
	'as nothing' => [ '', 'syntax' ]);
for my $name (sort keys %other_form)
{
	my ($changed, $word) = @{ $other_form{$name} };
	my ($signed) = jose_signs('centre-1', 'centre-1', 'emergencyShard.v1', $changed);

	is($node->safe_psql('postgres', "SELECT concat_ws(' ', problem, member) FROM limitledger.open_emergency_shard('$signed')"), $word, "soundly signed $name");
}

# The same text in another base64, and the parts of others.
my ($h, $p, $s) = split /\./, $envelope;
my $std = encode_base64(decode_base64url($s), '') =~ s/=+$//r;
my ($wrong) = jose_signs('stranger', 'centre-1', 'emergencyShard.v1', $payload);
my ($unknown) = jose_signs('stranger', 'stranger', 'emergencyShard.v1', $payload);
my ($typed) = jose_signs('centre-1', 'centre-1', 'shardReport.v1', $payload);

is(problem($wrong), 'signature', 'a wrong key under a trusted id');
is(problem($unknown), 'header', 'a key that nobody trusts');
is(problem($typed), 'header', 'another type');
is(problem("$h.$p.$s=="), 'signature_form', 'padding');
is(problem("$h.$p." . encode_base64url(decode_base64url($s) . "\0")), 'signature_form', 'a byte more');
is(problem("$h.$p.$std"), 'signature_form', 'the other alphabet') if $std =~ m{[+/]};
is(problem(encode_base64url('{"typ":"emergencyShard.v1","alg":"EdDSA","kid":"centre-1"}') . ".$p.$s"), 'header', 'a header in another order');
is(problem(encode_base64url('{"alg":"none"}') . ".$p."), 'header', 'no algorithm');
is(problem("{\"payload\":\"$p\",\"protected\":\"$h\",\"signature\":\"$s\"}"), 'parts', 'the JSON serialization');

# Every bit of each character, each cut, each character gone, three more at each place, neighbours
# in the other order; then 500 documents that a wrong key has signed.
my @forged = jose_signs('stranger', 'centre-1', 'emergencyShard.v1', map { $payload =~ s/"100"/"@{[100 + $_]}"/r } 1 .. 500);
$node->safe_psql('postgres', 'CREATE TABLE forged (e text)');
$node->safe_psql('postgres', 'SET log_statement = none; SET log_min_error_statement = panic; SET debug_print_parse = off; SET debug_print_rewritten = off; SET debug_print_plan = off;'
	  . 'INSERT INTO forged VALUES ' . join ',', map { "('$_')" } @forged);
$node->safe_psql('postgres', "CREATE TABLE altered AS
WITH e (e, n) AS (SELECT e, length(e) FROM (VALUES ('$envelope')) v (e)), at AS (SELECT e, n, i FROM e, generate_series(1, n) i)
SELECT 'a bit' AS what, overlay(e PLACING chr(ascii(substr(e, i, 1)) # (1 << b)) FROM i FOR 1) AS e FROM at, generate_series(0, 6) b
  WHERE ascii(substr(e, i, 1)) # (1 << b) > 0
UNION ALL SELECT 'its end', left(e, i - 1) FROM at
UNION ALL SELECT 'its start', substr(e, i + 1) FROM at
UNION ALL SELECT 'a character gone', overlay(e PLACING '' FROM i FOR 1) FROM at
UNION ALL SELECT 'a character more', overlay(e PLACING c FROM i FOR 0) FROM at, unnest('{A,.,=,_}'::text[]) c
UNION ALL SELECT 'two in the other order', overlay(e PLACING reverse(substr(e, i, 2)) FROM i FOR 2) FROM at WHERE i < n AND substr(e, i, 1) <> substr(e, i + 1, 1)
UNION ALL SELECT 'a wrong key', e FROM forged");
my $tally = $node->safe_psql('postgres', 'SELECT what, count(*), count(*) FILTER (WHERE o.problem IS NULL), count(*) FILTER (WHERE o.shard_id IS NOT NULL)
FROM altered a, limitledger.open_emergency_shard(a.e) o GROUP BY 1 ORDER BY 1');
my ($tried, $accepted) = (0, 0);
for (split /\n/, $tally)
{
	my ($what, $count, @through) = split /\|/;

	note(sprintf '%6d %s', $count, $what);
	$tried += $count;
	$accepted += $_ for @through;
}
is($accepted, 0, "$tried altered envelopes, none of them opened");
cmp_ok($tried, '>=', 10_000, 'enough of them');
is(opened($envelope), $OPENED, 'the one that was not altered opens');

# A report, which a gateway signs, in the same ways but fewer.
trust('gw-1.a', ", 'gw-1'");
my $REPORT = q({"allocatedUnits":"100","bootEpoch":"6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5","fence":"3","gateway":"gw-1","localAvailable":"0","localExcess":"0",)
  . q("localReserved":"0","localRetired":"75","localSpent":"25","receipts":[{"actualUnits":"25","operationId":"op-1","reservation":"r-1","reservedUnits":"40","state":"SETTLED"}],)
  . q("schema":"shardReport.v1","sealed":true,"sequence":"2","shard":"shard-7"});
my ($report) = jose_signs('gw-1.a', 'gw-1.a', 'shardReport.v1', $REPORT);
my $REPORTED = "SELECT problem, kid, gateway, reported_gateway, shard_id, fence, sequence, sealed, receipts FROM limitledger.envelope_open_report";

value_is($node, "$REPORTED('$report')", '|gw-1.a|gw-1|gw-1|shard-7|3|2|t|1', 'a report that jose has made opens here');
is(problem($report), 'header', 'and not as a shard');
is(problem((jose_signs('gw-1.a', 'gw-1.a', 'emergencyShard.v1', $payload))[0]), 'header', 'a gateway signs no shards');
value_is($node, "SELECT problem FROM limitledger.envelope_open_report('@{[jose_signs('centre-1', 'centre-1', 'shardReport.v1', $REPORT)]}')", 'header', 'the ledger signs no reports');
value_is($node, "WITH e (e, n) AS (SELECT e, length(e) FROM (VALUES ('$report')) v (e)), at AS (SELECT e, n, i FROM e, generate_series(1, n) i)
SELECT count(*) FILTER (WHERE o.problem IS NULL), count(*) > 1000 FROM (
  SELECT overlay(e PLACING CASE substr(e, i, 1) WHEN 'A' THEN 'B' ELSE 'A' END FROM i FOR 1) FROM at
  UNION ALL SELECT left(e, i - 1) FROM at) a (e), limitledger.envelope_open_report(a.e) o", '0|t', 'altered ones do not');

# In a database of another encoding documents are UTF-8 all the same.
$node->safe_psql('postgres', q(CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'));
$node->safe_psql('latin', "CREATE EXTENSION limitledger; SELECT limitledger.trust_key('$key{'centre-1'}{line}')");
my $latin = $node->safe_psql('latin', $SEAL =~ s/'tenant-a'/'tenant-' || chr(228)/r);
like(jose_verifies('centre-1', $latin), qr/"subject":"tenant-\xC3\xA4"/, 'what a LATIN1 database seals is UTF-8');
is($node->safe_psql('latin', "SELECT subject = 'tenant-' || chr(228), octet_length(subject) FROM limitledger.open_emergency_shard('$latin')"), 't|8', 'and LATIN1 again when it is opened there');
is($node->safe_psql('latin', $SEAL =~ s/'tenant-a'/repeat(chr(228), 128)/r) =~ /^ey/, 1, '128 such letters go in');
isnt($node->psql('latin', $SEAL =~ s/'tenant-a'/repeat(chr(228), 129)/r), 0, '129 do not');

# ---- Rotation -----------------------------------------------------------------------------------

my $session = session($node);
is($session->query_safe('SELECT kid FROM limitledger.signing_key_id()'), 'centre-1', 'an open session signs');
is(trust('centre-2'), 'ACCEPTED', 'the next key is trusted beside it');
signs_with($key{'centre-2'}{file});
is($session->query_safe('SELECT kid FROM limitledger.signing_key_id()'), 'centre-2', 'the open session signs with the next one');
my $second = seal();
is(problem($envelope) . problem($second), 'soundsound', 'for a while both count');
like(jose_verifies('centre-2', $second), qr/"kid":"centre-2"/, 'jose verifies with the next key');
isnt($second, $envelope, 'they differ');
is(distrust('centre-1'), 'ACCEPTED', 'the old one is given up');
is(problem($envelope) . ' ' . problem($second), 'header sound', 'one is left');
is($session->query_safe("SELECT problem FROM limitledger.open_emergency_shard('$envelope')"), 'header', 'in an open session, too');
spell($key{'centre-1'}{file}, slurp_file($key{'centre-2'}{file}));
signs_with($key{'centre-1'}{file});
is($session->query_safe($SEAL), $second, 'what counts is what the file holds');
spell($key{'centre-1'}{file}, $sound);
is(problem($session->query_safe($SEAL)), 'header', 'at each signing anew');
signs_with($key{'centre-2'}{file});

make_key($_) for qw(short raced raced-again);
$node->safe_psql('postgres', "SELECT limitledger.trust_key('$key{short}{line}', NULL, clock_timestamp() + interval '2 seconds')");
my ($by_short) = jose_signs('short', 'short', 'emergencyShard.v1', $payload);
my $earlier = problem($by_short);
ok($earlier eq 'sound' || $node->safe_psql('postgres', q(SELECT NOT trusted FROM limitledger.trusted_keys WHERE kid = 'short')) eq 't', 'a key with two seconds to live counts');
ok($node->poll_query_until('postgres', "SELECT problem FROM limitledger.open_emergency_shard('$by_short')", 'header'), 'and then not any more');

# Two keys under one id at the same instant: the second comes after the first.
(my $rival = $key{'raced-again'}{line}) =~ s/raced-again/raced/;
my $other = session($node);
$session->query_safe("BEGIN; SELECT outcome FROM limitledger.trust_key('$key{raced}{line}')");
send_query($other, "SELECT outcome FROM limitledger.trust_key('$rival')");
wait_blocked($node, 1);
is(problem($second), 'sound', 'envelopes are opened meanwhile');
$session->query_safe('COMMIT');
$other->query('SELECT 1');
value_is($node, q(SELECT public_key FROM limitledger.trusted_keys WHERE kid = 'raced'), $key{raced}{line}, 'the first key has the id');

# A change of trust is as durable as a call, and so can't be prepared.
for my $call ("trust_key('$key{'raced-again'}{line}')", q(distrust_key('raced', 'test')))
{
	my ($out, $err);

	$node->psql('postgres', "\\set VERBOSITY sqlstate\nBEGIN; SELECT limitledger.$call; PREPARE TRANSACTION 'p'", stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, qr/LL302/, "$call can't be prepared");
}
$session->quit;
$other->quit;

# ---- The secret is in its file, and nowhere else ---------------------------------------------------

my $dump = $node->basedir . '/dump.sql';
command_ok([ 'pg_dumpall', '-h', $node->host, '-p', $node->port, '-f', $dump ], 'a dump of all');
my $shown = $node->safe_psql('postgres', q(LOAD 'limitledger'; SELECT row_to_json(t)::text FROM limitledger.trusted_keys t; SELECT row_to_json(t)::text FROM limitledger.operator_actions t;
SELECT row_to_json(t)::text FROM pg_settings t; SELECT row_to_json(t)::text FROM pg_stat_activity t; SELECT row_to_json(t)::text FROM pg_backend_memory_contexts t));
$node->stop;

# forms of a secret: the text of its file, its bytes, hexadecimal in both cases, base64.
sub forms
{
	my $bytes = decode_base64url($_[0]);

	return ($_[0], $bytes, unpack('H*', $bytes), uc unpack('H*', $bytes), encode_base64($bytes, '') =~ s/=+$//r);
}

my %secret = map { my $kid = $_; map { $_ => "the secret of $kid" } forms($key{$kid}{seed}) } keys %key;
my $pattern = join '|', map { quotemeta } keys %secret;
my ($looked, @found, %public) = (0);

# look searches one text, and notes where the public half is, which may be anywhere.
sub look
{
	my ($where, $text) = @_;

	$looked++;
	push @found, "$where: $secret{$1}" while $text =~ /($pattern)/g;
	$public{$where} = 1 if index($text, decode_base64url($key{'centre-2'}{public})) >= 0 || index($text, $key{'centre-2'}{public}) >= 0;
	return;
}

look('views', $shown);
look('the dump', slurp_file($dump));
look('the log', slurp_file($node->logfile));
File::Find::find({ no_chdir => 1, wanted => sub { look(s/^\Q@{[$node->data_dir]}\E/data/r, slurp_file($_)) if -f $_ && !-l $_ } }, $node->data_dir);
is(join("\n", @found), '', "the secret keys are in none of $looked files and texts");
ok($public{$_}, "the public one is found in $_, so that a secret would be") for 'views', 'the log';
cmp_ok(scalar(grep { m{^data/base/} } keys %public), '>=', 1, 'and in a table');
cmp_ok(scalar(grep { m{^data/pg_wal/} } keys %public), '>=', 1, 'and in the log of writes');
look('itself', slurp_file($key{'centre-2'}{file}));
is(join("\n", @found), 'itself: the secret of centre-2', 'and the secret where it belongs');

done_testing();
