# Envelopes and keys, against what others make of them (G3): OpenSSL, Node's own crypto
# and the JOSE library jose verify what is sealed here, and what they sign opens here;
# OpenSSL makes the keys, through tools/make-signing-key. docs/envelope.md shows envelopes, words and
# bounds as they are. No server is started.
#
# Fails when: the form is not the one of RFC 7515 and RFC 8037 any more, a payload is
# not RFC 8785's, the secret key gets out, or the page says something else.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use MIME::Base64 qw(decode_base64url encode_base64url);
use PostgreSQL::Test::Utils;
use Test::More;

chdir "$FindBin::RealBin/../.." or die $!;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $tool = "$folder/envelope";
my $page = slurp_file('docs/envelope.md');
my @TYPES = qw(emergencyShard.v1 shardReport.v1);

# The prefixes of RFC 8410: what OpenSSL wants around the 32 bytes of a key.
my $SECRET_DER = pack('H*', '302e020100300506032b657004220420');
my $PUBLIC_DER = pack('H*', '302a300506032b6570032100');

system(split(' ', $ENV{CC} // 'cc'), qw(-O1 -g -Wall -Wextra), '-fsanitize=address,undefined', $ENV{CI} ? '-Werror' : (),
	'-Isrc', '-o', $tool, 'test/t/066_envelope.c', glob('src/envelope/*.c'), 'src/core/transition.c', '-lsodium') == 0
  or BAIL_OUT('the command does not compile');

# run returns what a command prints, on both channels, and whether it ended well.
sub run
{
	my ($in, @command) = @_;
	my ($out, $err);
	my $well = IPC::Run::run(\@command, '<', \$in, '>', \$out, '2>', \$err);

	return ($out, $well, $err);
}

sub spell
{
	my ($path, $bytes) = @_;

	open(my $out, '>:raw', $path) or die "$path: $!";
	print {$out} $bytes;
	close $out;
	return $path;
}

# ---- A key, made by OpenSSL ---------------------------------------------------------

my $file = "$folder/centre-1.key";
my ($line, $made, $said) = run('', 'tools/make-signing-key', $file, 'centre-1');
my $secret_line = slurp_file($file);
my ($seed) = $secret_line =~ /\Alimitledger-ed25519-secret-v1 centre-1 ([\w-]{43})\n\z/;
my ($public) = $line =~ /\Alimitledger-ed25519-public-v1 centre-1 ([\w-]{43})\n\z/;

ok($made && $said eq '', 'a key is made');
ok(defined $seed, 'its file is one line of the secret form');
ok(defined $public, 'what is printed is the line of the public key, and nothing else');
is(sprintf('%04o', (stat $file)[2] & 07777), '0600', 'the file is its owner\'s alone');
is((run('', $tool, 'public', $file))[0], $line, 'the key that is read has that public half');
is((run('', $tool, 'public', $file, $folder))[0], "inside\n", 'but not from inside the data folder');
($said, $made) = run('', 'tools/make-signing-key', $file, 'centre-1');
ok(!$made && slurp_file($file) eq $secret_line, 'a file that is there is not written over');
symlink "$folder/elsewhere", "$folder/link" or die $!;
ok(!(run('', 'tools/make-signing-key', "$folder/link", 'k'))[1] && !-e "$folder/elsewhere", 'nor is a link followed');
ok(!(run('', 'tools/make-signing-key', "$folder/odd.key", $_))[1] && !-e "$folder/odd.key", "no key is called '$_'")
  for '', 'a b', 'a/b', "a\n", "\xC3\xA4", 'x' x 65;
like((run('', 'tools/make-signing-key', '--help'))[0], qr/^  tools\/make-signing-key FILE KID$/m, 'it explains itself');
chmod 0640, $file;
is((run('', $tool, 'public', $file))[0], "mode\n", 'a wider mode is refused');
chmod 0600, $file;

# ---- What others verify, and what they sign -----------------------------------------

my $secret_der = spell("$folder/secret.der", $SECRET_DER . decode_base64url($seed));
my $public_der = spell("$folder/public.der", $PUBLIC_DER . decode_base64url($public));

# Node's crypto with JWKs; its payload is built anew from the parsed members.
my $NODE = <<'JS';
const crypto = require('crypto');
const [what, x, d] = process.argv.slice(1);
const text = require('fs').readFileSync(0, 'latin1');
const jwk = { kty: 'OKP', crv: 'Ed25519', x, ...(d && { d }) };
const sorted = v => Array.isArray(v) ? v.map(sorted) : v !== null && typeof v === 'object'
  ? Object.fromEntries(Object.keys(v).sort().map(k => [k, sorted(v[k])])) : v;
if (what === 'verify') {
  const [header, payload, signature] = text.split('.');
  const ok = crypto.verify(null, Buffer.from(`${header}.${payload}`),
    crypto.createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(signature, 'base64url'));
  const members = JSON.parse(Buffer.from(payload, 'base64url'));
  const { alg, kid, typ } = JSON.parse(Buffer.from(header, 'base64url'));
  process.stdout.write(`${ok} ${alg} ${kid} ${typ} ${JSON.stringify(sorted(members))}`);
} else {
  const payload = JSON.parse(Buffer.from(text, 'latin1'));
  const header = { alg: 'EdDSA', kid: 'centre-1', typ: payload.schema };
  const part = v => Buffer.from(JSON.stringify(v)).toString('base64url');
  const input = `${part(header)}.${part(sorted(payload))}`;
  const signature = crypto.sign(null, Buffer.from(input), crypto.createPrivateKey({ key: jwk, format: 'jwk' }));
  process.stdout.write(`${input}.${signature.toString('base64url')}`);
}
JS

# The same by jose, as whoever uses it would write it. Debian's place, and that of tools/setup.
my $JOSE = <<'JS';
const { CompactSign, compactVerify, importJWK } = require('jose');
const [what, x, d] = process.argv.slice(1);
const text = require('fs').readFileSync(0);
(async () => {
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x, ...(d && { d }) }, 'EdDSA');
  if (what === 'verify') {
    const { payload, protectedHeader } = await compactVerify(text.toString(), key, { algorithms: ['EdDSA'] });
    const { alg, kid, typ } = protectedHeader;
    process.stdout.write(`true ${alg} ${kid} ${typ} ${Buffer.from(payload)}`);
  } else {
    const header = { alg: 'EdDSA', kid: 'centre-1', typ: JSON.parse(text).schema };
    process.stdout.write(await new CompactSign(text).setProtectedHeader(header).sign(key));
  }
})();
JS
$ENV{NODE_PATH} = "/usr/share/nodejs:$FindBin::RealBin/../../clients/node/node_modules";

# openssl_verifies tells whether OpenSSL takes the third part for a signature of the others.
sub openssl_verifies
{
	my ($envelope) = @_;
	my ($input, $signature) = $envelope =~ /\A(.*)\.(.*)\z/s;
	my ($bytes, $text) = (spell("$folder/signature", decode_base64url($signature)), spell("$folder/input", $input));

	return (run('', qw(openssl pkeyutl -verify -rawin -pubin -keyform DER -inkey), $public_der, '-sigfile', $bytes, '-in', $text))[1];
}

sub openssl_signs
{
	my ($type, $payload) = @_;
	my $input = join '.', map { encode_base64url($_) } qq({"alg":"EdDSA","kid":"centre-1","typ":"$type"}), $payload;
	my ($signature) = run('', qw(openssl pkeyutl -sign -rawin -keyform DER -inkey), $secret_der, '-in', spell("$folder/input", $input));

	return $input . '.' . encode_base64url($signature);
}

# Beside the documents of the page: what a text may hold, at its most awkward.
my %payload = map { $_ => payload_of($_) } @TYPES;
my $awkward = $payload{ $TYPES[0] } =~ s/"tenant-a"/"\\b\\t\\n\\f\\r\\"\\\\\/\\u0001\\u001f\x7F\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x80\xA8"/r;
my $other = 'limitledger-ed25519-public-v1 centre-2 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
chomp(my $trusted = $line);

for my $case ((map { [ $_, $payload{$_} ] } @TYPES), [ $TYPES[0], $awkward ])
{
	my ($type, $payload) = @$case;
	my $name = $payload eq $awkward ? 'awkward texts' : $type;
	my ($envelope, $sealed) = run($payload, $tool, 'seal', $type, $file);

	ok($sealed, "$name: sealed here") or diag($envelope);
	is((run($envelope, 'node', '-e', $NODE, 'verify', $public))[0], "true EdDSA centre-1 $type $payload",
		"$name: Node verifies it, and writes the payload as it is");
	is((run($envelope, 'node', '-e', $JOSE, 'verify', $public))[0], "true EdDSA centre-1 $type $payload", "$name: jose verifies it");
	ok(openssl_verifies($envelope), "$name: OpenSSL verifies it");
	ok(!openssl_verifies($envelope =~ s/\.(.)/'.' . ($1 eq 'e' ? 'f' : 'e')/er), "$name: and not another one");
	is((run($payload, 'node', '-e', $NODE, 'sign', $public, $seed))[0], $envelope, "$name: Node makes the same");
	is((run($payload, 'node', '-e', $JOSE, 'sign', $public, $seed))[0], $envelope, "$name: jose makes the same");
	is(openssl_signs($type, $payload), $envelope, "$name: OpenSSL makes the same");
	is((run($envelope, $tool, 'open', $type, $other, $trusted))[0], $payload, "$name: it opens here");
	is((run($envelope, $tool, 'open', $type, $other))[0], "header\n", "$name: not for those who do not trust the key");
}

# ---- What the page says -----------------------------------------------------------

# rows returns the rows of the table below a mark of the page.
sub rows
{
	my ($mark) = @_;
	my ($table) = $page =~ /<!-- \Q$mark\E, compared -->\n+\|.*\n\|.*\n((?:\|.*\n)+)/ or return "no table $mark";

	return join "\n", map { s/^\|\s*|\s*\|$|`//gr =~ s/\s*\|\s*/ | /gr } split /\n/, $table;
}

# payload_of returns the payload that the page shows: that of its envelope.
sub payload_of
{
	my ($type) = @_;
	my ($shown) = $page =~ /<!-- payload \Q$type\E, compared -->\n+```\n(.*?)\n```/s or BAIL_OUT("no payload of $type");

	return $shown =~ s/\n//gr;
}

my ($errors) = run('', $tool, 'errors');

is(rows('errors'), join("\n", $errors =~ /^envelope \| (.*)$/mg), 'the words for envelopes');
is(rows('key errors'), join("\n", $errors =~ /^key \| (.*)$/mg), 'the words for keys');
is(rows('bounds'), join("\n", split /\n/, (run('', $tool, 'bounds'))[0]), 'the bounds');

for my $type (@TYPES)
{
	my ($secret, $known) = $page =~ /<!-- key \Q$type\E, compared -->\n+```\n(.*\n)(.*\n)```/ or BAIL_OUT("no key for $type");
	my ($shown) = $page =~ /<!-- envelope \Q$type\E, compared -->\n+```\n(.*?)\n```/s;
	my $example = spell("$folder/$type.key", $secret);

	chmod 0600, $example;
	is((run('', $tool, 'public', $example))[0], $known, "the key of the example $type");
	is((run($payload{$type}, $tool, 'seal', $type, $example))[0], $shown =~ s/\n//gr, "the envelope $type, byte for byte");
}

done_testing();
