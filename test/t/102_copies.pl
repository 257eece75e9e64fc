# Copies: a ledger that was cloned, restored, rolled back or promoted knows that it is
# not the original, and the original goes on undisturbed (G7).
#
# Fails when: a copy passes for the original by any of the ways in which one is made, two
# copies that see one witness file both go on, a crash or a ROLLBACK anywhere leaves the
# original shut out by its own file, a file that can't be trusted or written is taken
# for a good one, a look waits for another transaction, or quarantine stops what has to
# go on.

use strict;
use warnings FATAL => 'all';

use Fcntl qw(:flock);
use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $folder = PostgreSQL::Test::Utils::tempdir();
my $file = "$folder/app.witness";
my $UUID = qr/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
my $ROW = 'SELECT incarnation FROM limitledger.incarnation';
my $node = ledger_node('copies', 'wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on', 'restart_after_crash = on', 'wal_writer_delay = 10s');

# ---- what the file and the ledger say -------------------------------------------------

sub status { return $_[0]->safe_psql($_[1] // 'postgres', 'SELECT status FROM limitledger.recovery_status()') }
sub look { return $_[0]->safe_psql($_[1] // 'postgres', 'SELECT limitledger.recovery_look()') }

# why returns the status and what is wrong, in words.
sub why { return $_[0]->safe_psql($_[1] // 'postgres', q(SELECT status || ': ' || detail FROM limitledger.recovery_status())) }

# names returns the incarnations of a file.
sub names { return slurp_file($_[0] // $file) =~ /\Alimitledger-witness-v1 [0-9A-F]+\/[0-9A-F]+ ($UUID)(?: ($UUID))?\n\z/ }

sub spell
{
	my ($path, $text, $mode) = @_;

	unlink $path;
	open(my $out, '>', $path) or die "$path: $!";
	print {$out} $text;
	close $out;
	chmod $mode // 0600, $path or die $!;
	return;
}

# is_normal asserts that row and file agree, on one incarnation.
sub is_normal
{
	my ($on, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(look($on), 'normal', "$name: normal");
	is(join(' ', grep { defined } names()), $on->safe_psql('postgres', $ROW), "$name: the file names what the row does, and nothing else");
}

sub fails_with
{
	my ($on, $sql, $code, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $out, $err) = $on->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	like($err, qr/ERROR:  $code: /, $name);
	return $err;
}

# reserve returns how a call of a new id was answered.
my $ids = 0;

sub reserve
{
	my ($on, $settings) = @_;

	$ids++;
	return $on->safe_psql('postgres', ($settings // '') . "SELECT outcome, dimension, retry_kind FROM limitledger.reserve_capacity('t1', 'chat', 'r$ids', 1, sha256('d'))");
}
my $OFF = 'SET limitledger.admit_in_recovery = off;';

# ---- set up ----------------------------------------------------------------------------

is(why($node), 'unset: limitledger.witness_file is not set, and no incarnation was acknowledged', 'nothing is set up');
is(look($node), 'unset', 'nor for a call that writes');
like(fails_with($node, "SELECT * FROM limitledger.acknowledge_recovery('x')", 'LL403', 'without a file nothing is acknowledged'),
	qr/ALTER DATABASE/, 'and the hint says how');
publish($node);
is(reserve($node, $OFF), 'ACCEPTED||', 'it admits whatever the setting says');

fails_with($node, "LOAD 'limitledger'; SET limitledger.witness_file = 'here'", '22023', 'a path that is not absolute');
fails_with($node, "LOAD 'limitledger'; SET limitledger.witness_file = '/tmp/'", '22023', 'a folder');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');
fails_with($node, "LOAD 'limitledger'; SET ROLE somebody; SET limitledger.$_", '42501', "$_ is for superusers") for q(witness_file = '/tmp/w'), q(admit_in_recovery = off);

# As the documents say it, for this folder and this database.
my %DRILL = drills();
is(join(' ', sort keys %DRILL), 'cloned promotion restored setup', 'the drills are documented');
run_drill($node, 'setup', 'normal');
is_normal($node, 'set up');
is((stat $file)[2] & 07777, 0600, 'the file is its owner\'s alone');
is($node->safe_psql('postgres', "SELECT action, subject, route, reason, actor = current_user FROM limitledger.operator_actions"),
	'acknowledge_recovery|*|*|the first set-up|t', 'who did it is recorded');

# ---- looks that write and looks that read ------------------------------------------------

my ($lsn) = slurp_file($file) =~ / (\S+\/\S+) /;
$node->safe_psql('postgres', 'SELECT pg_switch_wal(); CHECKPOINT');
my @was = stat $file;
is(status($node), 'normal', 'the status is read');
is((stat $file)[1], $was[1], 'without writing the file');
fails_with($node, 'BEGIN READ ONLY; SELECT limitledger.recovery_look()', '25006', 'a look that writes wants a transaction that may');
is_normal($node, 'later');
my ($later) = slurp_file($file) =~ / (\S+\/\S+) /;
is($node->safe_psql('postgres', "SELECT '$later'::pg_lsn > '$lsn'::pg_lsn, '$later'::pg_lsn <= pg_current_wal_flush_lsn()"), 't|t', 'the file follows the log');
ok(!-e "$file.new", 'and leaves nothing beside it');

fails_with($node, $_, 'LL902', "not by hand: $_") for 'UPDATE limitledger.incarnation SET timeline = 2', 'DELETE FROM limitledger.incarnation', 'TRUNCATE limitledger.incarnation';
fails_with($node, 'BEGIN; SELECT * FROM limitledger.acknowledge_recovery(\'x\'); PREPARE TRANSACTION \'x\'', '(?:LL302|55000)', 'it is not prepared');
is(look($node), 'normal', 'a name that nobody committed does no harm');
is((names())[0], $node->safe_psql('postgres', $ROW), 'and stands behind the one that counts');

$node->safe_psql('postgres', q(CREATE ROLE auditor; CREATE ROLE operator; CREATE ROLE monitor IN ROLE pg_monitor;
  SELECT limitledger.grant_bundle('auditor', 'auditor'), limitledger.grant_bundle('operator', 'operator')));
is($node->safe_psql('postgres', "SET ROLE $_; SELECT status FROM limitledger.recovery_status()"), 'normal', "$_ reads the status") for qw(auditor operator monitor);
fails_with($node, 'SET ROLE auditor; SELECT * FROM limitledger.acknowledge_recovery(\'x\')', '42501', 'an auditor acknowledges nothing');
is($node->safe_psql('postgres', "SET ROLE operator; SELECT outcome, status_before FROM limitledger.acknowledge_recovery('by an operator')"),
	'ACCEPTED|normal', 'an operator does');
is_normal($node, 'acknowledged again');

# ---- files that nobody trusts ------------------------------------------------------------

my $sound = slurp_file($file);
my ($one) = names();
my $other = '0d1e2f3a-0000-4000-8000-000000000001';
my %FORM = (
	'empty' => '', 'without its end' => $sound =~ s/\n//r, 'with a line behind' => "$sound\n", 'of another version' => $sound =~ s/v1/v2/r,
	'without a position' => "limitledger-witness-v1 $one\n", 'without an incarnation' => "limitledger-witness-v1 0/1\n",
	'with three' => "limitledger-witness-v1 0/1 $one $one $one\n", 'in capitals' => $sound =~ s/($one)/\U$1/r, 'with blanks' => $sound =~ s/ /  /r,
	'with a zero in front' => $sound =~ s/v1 /v1 0/r, 'with a NUL' => "$sound\0", 'cut short' => substr($sound, 0, 60), 'very long' => $sound x 1000);

# untrusted asserts what is said of a file, and that nobody writes it.
sub untrusted
{
	my ($said, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @before = lstat $file;

	like(why($node), qr/^quarantined: the .*$said/, "$name: said");
	is(look($node), 'quarantined', "$name: quarantined");
	is((lstat $file)[1] // '', $before[1] // '', "$name: the file is left as it is");
}

for my $form (sort keys %FORM)
{
	spell($file, $FORM{$form});
	untrusted('not one line', "a file $form");
}
spell($file, $sound, $_), untrusted('more than 0600', sprintf('mode %o', $_)) for 0640, 0604, 0700, 0660;
spell($file, $sound);
rename $file, "$file.there" or die $!;
untrusted('not there', 'no file');
symlink "$file.there", $file or die $!;
untrusted('symbolic link', 'a link');
unlink $file;
link "$file.there", $file or die $!;
untrusted('second name', 'a second name');
unlink $file;
mkdir $file or die $!;
untrusted('no regular file|can.t be read', 'a folder');
rmdir $file;
system_or_bail('mkfifo', '-m', '600', $file);
untrusted('no regular file', 'a pipe');
unlink $file;
rename "$file.there", $file or die $!;
is_normal($node, 'with its own file again');
like($node->safe_psql('postgres', "SET limitledger.witness_file = '@{[$node->data_dir]}/w'; SELECT status, detail FROM limitledger.recovery_status()"),
	qr/^quarantined\|.*inside the data folder/, 'a file inside the data folder');
symlink $node->data_dir . '/base', "$folder/away" or die $!;
like(fails_with($node, "SET limitledger.witness_file = '$folder/away/w'; SELECT * FROM limitledger.acknowledge_recovery('x')", 'LL403', 'nor one whose folder leads there'),
	qr/inside the data folder/, 'is acknowledged');
like($node->safe_psql('postgres', "SET limitledger.witness_file = '/nowhere/w'; SELECT status, detail FROM limitledger.recovery_status()"),
	qr/^quarantined\|the folder/, 'a folder that is not there');
like($node->safe_psql('postgres', q(SET limitledger.witness_file = ''; SELECT status, detail FROM limitledger.recovery_status())),
	qr/^unset\|limitledger.witness_file is not set$/, 'no file set any more');

# ---- a file that can't be written ----------------------------------------------------------

# unwritable asserts that calls fail as a whole, and readers go on.
sub unwritable
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $text = slurp_file($file);
	my $row = $node->safe_psql('postgres', 'SELECT * FROM limitledger.incarnation');

	fails_with($node, 'SELECT limitledger.recovery_look()', 'LL403', "$name: a look that writes fails");
	fails_with($node, "SELECT * FROM limitledger.acknowledge_recovery('x')", 'LL403', "$name: nothing is acknowledged");
	is(status($node), 'normal', "$name: the status is read");
	is(slurp_file($file), $text, "$name: the file stands");
	is($node->safe_psql('postgres', 'SELECT * FROM limitledger.incarnation'), $row, "$name: the row stands");
	is(reserve($node, $OFF), 'ACCEPTED||', "$name: admission goes on");
}
mkdir "$file.new" or die $!;
unwritable('the new file can\'t be made');
rmdir "$file.new";
chmod 0500, $folder or die $!;
unwritable('the folder is read-only');
chmod 0700, $folder or die $!;
spell("$file.new", 'left by a crash');
is_normal($node, 'with what a crash has left beside it');

# ---- quarantine: what stops and what goes on -----------------------------------------------

$node->safe_psql('postgres', q(SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'run', 5, sha256('d'), start_operation => 'run');
  SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'hold', 5, sha256('d'))));
my $session = session($node);
$session->query_safe($OFF);
rename $file, "$file.away" or die $!;
is(look($node), 'quarantined', 'without its file it is quarantined');
is(reserve($node), 'ACCEPTED||', 'it goes on admitting');
is(reserve($node, $OFF), 'REFUSED|recovery|operator', 'unless it is set to admit nothing then');
is($node->safe_psql('postgres', "$OFF SELECT outcome, dimension FROM limitledger.reserve_capacity_batch('{t1,t1}', '{chat,chat}', '{b1,b2}', '{1,1}', ARRAY[sha256('d'), sha256('d')])"),
	"REFUSED|recovery\nREFUSED|recovery", 'nor in a batch');
is($node->safe_psql('postgres', "$OFF SELECT outcome, dimension FROM limitledger.extend_reservation('t1', 'hold', 'x', 5)"), 'REFUSED|recovery', 'nor by an extension');
is($node->safe_psql('postgres', "$OFF SELECT outcome, replayed FROM limitledger.reserve_capacity('t1', 'chat', 'hold', 5, sha256('d'))"), 'ACCEPTED|t', 'what was admitted is answered');
is($node->safe_psql('postgres', "$OFF SELECT outcome, state FROM limitledger.settle_usage('t1', 'run', 'run', 3)"), 'ACCEPTED|SETTLED', 'settlement goes on');
is($node->safe_psql('postgres', "$OFF SELECT outcome FROM limitledger.release_reservation('t1', 'hold')"), 'ACCEPTED', 'and release');
is($node->safe_psql('postgres', "$OFF SELECT outcome FROM limitledger.record_usage('t1', 'chat', 'ran', 3)"), 'ACCEPTED', 'and usage that was not reserved');
my $NEW = "SELECT outcome, dimension FROM limitledger.reserve_capacity('t1', 'chat', 'again', 1, sha256('d'))";
is($session->query_safe($NEW), 'REFUSED|recovery', 'a session that stays is told, too');
rename "$file.away", $file or die $!;
is($session->query_safe($NEW), 'ACCEPTED|', 'and admits in the next transaction once it is over');
$session->query_safe('BEGIN');
is($session->query_safe($NEW =~ s/again/more/r), 'ACCEPTED|', 'within a transaction');
rename $file, "$file.away" or die $!;
is($session->query_safe($NEW =~ s/again/rest/r), 'ACCEPTED|', 'what was found holds to its end');
$session->query_safe('COMMIT');
is($session->query_safe($NEW =~ s/again/late/r), 'REFUSED|recovery', 'and no longer');
rename "$file.away", $file or die $!;
$session->quit;

# ---- a new incarnation after each start ------------------------------------------------------

# started returns a session after a start of the server, and what was named before it.
sub started
{
	my ($how) = @_;
	my ($before) = names();

	$node->stop($how // 'fast');
	$node->start;
	return (session($node), $before);
}
my $before;
($session, $before) = started();
is(status($node), 'normal', 'a start is no reason to doubt');
is(join(' ', grep { defined } names()), $before, 'the status replaces nothing');
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'the first look that writes');
isnt((names())[0], $before, 'replaces the incarnation');
is_normal($node, 'from then on');
$session->quit;

# What a transaction rolls back is not forgotten by the file before it is certain.
($session, $before) = started();
$session->query_safe('BEGIN');
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'a first look');
is((names())[0], $before, 'the file goes on naming the old one');
is((names())[1], $session->query_safe($ROW), 'beside the new one');
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'a second look in the same transaction');
is(scalar(grep { defined } names()), 2, 'leaves both');
is(look($node), 'normal', 'another session does not wait for it');
is(status($node), 'normal', 'nor a reader');
is(scalar(grep { defined } names()), 2, 'and they leave both');
$session->query_safe('ROLLBACK');
is($node->safe_psql('postgres', $ROW), $before, 'rolled back, the old one stands');
is_normal($node, 'after the ROLLBACK');
$session->quit;

# Savepoints: an inner look, an inner acknowledgement, undone.
($session, $before) = started();
$session->query_safe($_) for 'BEGIN', 'SAVEPOINT s', 'SELECT limitledger.recovery_look()', 'ROLLBACK TO s', 'COMMIT';
is($session->query_safe($ROW), $before, 'a savepoint that is undone takes the new one along');
$session->query_safe($_) for 'BEGIN', 'SAVEPOINT s', 'SELECT limitledger.recovery_look()', 'ROLLBACK TO s';
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'another one is made');
my $inner = $session->query_safe($ROW);
$session->query_safe('SAVEPOINT t');
is($session->query_safe("SELECT outcome, status_before, incarnation FROM limitledger.acknowledge_recovery('twice')"), "ACCEPTED|normal|$inner",
	'what is new already serves an acknowledgement');
$session->query_safe('ROLLBACK TO t');
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'that undone, the first stands');
$session->query_safe('COMMIT');
is(join(' ', grep { defined } names()), $inner, 'and is what is committed');
is_normal($node, 'after savepoints');
$session->query_safe($_) for 'BEGIN', 'SAVEPOINT s', "SELECT * FROM limitledger.acknowledge_recovery('inner')", 'RELEASE s', 'COMMIT';
is_normal($node, 'after a savepoint that was released');
$session->query_safe($_) for 'BEGIN', "SELECT * FROM limitledger.acknowledge_recovery('undone')", 'ROLLBACK';
is(look($node), 'normal', 'after an acknowledgement that was undone');
$session->quit;

# Nothing waits, and many at once leave one name.
($session, $before) = started();
my $many = session($node);
$session->query_safe('BEGIN');
$session->query_safe('SELECT limitledger.recovery_look()');
is($many->query_safe("SET lock_timeout = '1ms'; SELECT limitledger.recovery_look()"), 'normal', 'two lookers at once: the second waits for no lock');
is($many->query_safe($ROW), $before, 'and replaces nothing');
$session->query_safe('COMMIT');
is_normal($node, 'when the first is done');
$_->quit for $session, $many;
($session, $before) = started();
my ($code, $output) = bench($node, '-c', 8, '-t', 20, '-f', write_script('look', "SELECT 1 / (limitledger.recovery_look() = 'normal')::int;\n"));
is($code, 0, 'many lookers at once find it normal') or diag($output);
is_normal($node, 'after many');
isnt((names())[0], $before, 'under one new name');

# Snapshots of old: what the file says is of now, and so is the row.
$session->query_safe($_) for 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
$node->safe_psql('postgres', "SELECT FROM limitledger.acknowledge_recovery('meanwhile')");
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'REPEATABLE READ: a look sees what is committed by now');
$session->query(q(SELECT * FROM limitledger.acknowledge_recovery('too late')));
like($session->{stderr}, qr/could not serialize/, 'and acknowledges nothing by what it saw before');
$session->{stderr} = '';
$session->query_safe('ROLLBACK');
is_normal($node, 'after that');
$session->quit;
($session, $before) = started();
$session->query_safe("SET limitledger.clock_override = '2001-01-01 00:00:00+00'");
is($session->query_safe('SELECT limitledger.recovery_look()'), 'normal', 'a clock that stepped back changes nothing');
is_normal($node, 'with the right one');
$session->quit;

# ---- crashes -----------------------------------------------------------------------------------

($session, $before) = started();
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe($_) for 'BEGIN', 'SELECT limitledger.recovery_look()';
my ($old, $new) = names();
kill 'KILL', $pid or die $!;
poll_up($node);
eval { $session->quit };
is(join(' ', names()), "$old $new", 'kill -9 between file and commit leaves both names');
is($node->safe_psql('postgres', $ROW), $old, 'and the old row');
is_normal($node, 'after the crash');
isnt((names())[0], $new, 'under another new name');

($session, $before) = started();
$session->query_safe($_) for 'SET synchronous_commit = off', 'BEGIN', 'SELECT limitledger.recovery_look()';
my $inode = (stat $file)[1];
open(my $held, '+<', $file) or die $!;
flock($held, LOCK_EX) or die $!;
$session->query_safe('COMMIT');
($old, $new) = names();
is($old, $before, 'a commit whose file is kept locked by somebody leaves both names');
$node->stop('immediate');
close $held;
$node->start;
eval { $session->quit };
is($node->safe_psql('postgres', $ROW), $new, 'the row is on disk, whatever synchronous_commit says');
is(status($node), 'normal', 'a crash between commit and file does no harm');
is_normal($node, 'after it');

($session, $before) = started();
$session->query_safe($_) for 'SET synchronous_commit = off', 'SET limitledger.durability_required = off', 'BEGIN', 'SELECT limitledger.recovery_look()', 'COMMIT';
isnt((names())[0], $before, 'the file goes by what is committed');
$node->stop('immediate');
$node->start;
eval { $session->quit };
is_normal($node, 'and so by what is on disk');

# The file is kept locked: a call waits, and goes on.
open($held, '+<', $file) or die $!;
flock($held, LOCK_EX) or die $!;
$session = session($node);
send_query($session, 'SELECT limitledger.recovery_look()');
await_turn();
is(status($node), 'normal', 'a reader does not wait for the file');
close $held;
like($session->query_until(qr/normal|quarantined/, "\n"), qr/normal/, 'a writer waits its turn');
$sound = slurp_file($file);
open($held, '+<', $file) or die $!;
flock($held, LOCK_EX) or die $!;
send_query($session, 'SELECT limitledger.recovery_look()');
await_turn();
syswrite($held, $sound =~ s/$UUID/$other/r);
close $held;
like($session->query_until(qr/normal|quarantined/, "\n"), qr/quarantined/, 'and goes by what the file says then');
$session->quit;
is(slurp_file($file), $sound =~ s/$UUID/$other/r, 'which it leaves as it is');
spell($file, $sound);
is_normal($node, 'with its own name again');

# await_turn waits until a call waits for its turn at the file.
sub await_turn
{
	$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension')) or die 'nobody waits';
	return;
}

# poll_up waits until the server has recovered.
sub poll_up
{
	my ($on) = @_;

	for (1 .. 300)
	{
		my ($status) = $on->psql('postgres', 'SELECT 1');
		return if $status == 0;
		usleep(100_000);
	}
	die 'the server does not come back';
}

# ---- copies ---------------------------------------------------------------------------------------

# copy starts a server from a backup beside the original; of the setting it has what that had.
sub copy
{
	my ($name, $backup, %how) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);

	$copy->init_from_backup($node, $backup, %how);
	$copy->start;
	return $copy;
}
$node->safe_psql('postgres', "INSERT INTO limitledger.gateway VALUES ('g1', NULL, NULL, 5, now(), 'test'), ('g2', NULL, NULL, 0, now(), 'test')");
my $FENCES = q(SELECT string_agg(last_fence::text, ' ' ORDER BY gateway) FROM limitledger.gateway);
$node->stop;
$node->backup_fs_cold('cold');
$node->start;
my $copy = copy('cold', 'cold');
like(why($copy), qr/^quarantined: the data folder is another one/, 'a cold copy beside the original, with its file');
is(look($copy), 'quarantined', 'does not pass for it');
is_normal($node, 'the original');
like(why($copy), qr/^quarantined: the witness file names another incarnation/, 'whose next incarnation shuts the copy out for good');
like($copy->safe_psql('postgres', "SET limitledger.witness_file = '$folder/none'; SELECT status, detail FROM limitledger.recovery_status()"), qr/^quarantined\|.*not there/, 'a copy without a file');
spell("$folder/other", "limitledger-witness-v1 0/1 $other\n");
like($copy->safe_psql('postgres', "SET limitledger.witness_file = '$folder/other'; SELECT status, detail FROM limitledger.recovery_status()"),
	qr/^quarantined\|.*names another/, 'a copy with another file');
is(reserve($copy, $OFF), 'REFUSED|recovery|operator', 'a copy can be set to admit nothing');
run_drill($copy, 'cloned', 'normal', '/var/lib/limitledger/clone' => "$folder/clone");
is($copy->safe_psql('postgres', $FENCES), '1000005 1000000', 'a copy that is acknowledged gives no fence that the original may have given');
is_normal($node, 'the original, beside a copy that has a file of its own,');
$copy->safe_psql('postgres', "ALTER DATABASE postgres SET limitledger.witness_file = '$file'");
is($copy->safe_psql('postgres', "SELECT status_before FROM limitledger.acknowledge_recovery('takes over')"), 'quarantined', 'a copy that takes the file over');
is(look($node), 'quarantined', 'shuts the original out');
is(look($copy), 'normal', 'and goes on');
$copy->stop;
is($node->safe_psql('postgres', "SELECT status_before FROM limitledger.acknowledge_recovery('back again')"), 'quarantined', 'the original comes back by an operator\'s word');
is_normal($node, 'the original');

# Two that nothing tells apart but the file: whoever looks first goes on, the other does not.
$node->stop;
$node->backup_fs_cold('twins');
$node->start;
$copy = copy('twin', 'twins');
$copy->safe_psql('postgres', "SET session_replication_role = replica; UPDATE limitledger.incarnation SET data_folder = '@{[$copy->data_dir]}'");
is(status($copy), 'normal', 'a copy that nothing but the file tells from the original');
is(status($node), 'normal', 'while nobody has written');
$session = session($node);
$session->query_safe($_) for 'BEGIN', 'SELECT limitledger.recovery_look()';
is(look($copy), 'normal', 'both at once: the copy is quicker');
$session->query_safe('COMMIT');
is(look($node), 'quarantined', 'then the original does not go on');
is(look($copy), 'normal', 'and the copy does');
$session->quit;
$copy->stop;
$node->safe_psql('postgres', "SELECT FROM limitledger.acknowledge_recovery('back again')");
$node->stop;
$node->backup_fs_cold('twins2');
$node->start;
is_normal($node, 'the other way round, the original is first');
$copy = copy('twin2', 'twins2');
$copy->safe_psql('postgres', "SET session_replication_role = replica; UPDATE limitledger.incarnation SET data_folder = '@{[$copy->data_dir]}'");
like(why($copy), qr/names another incarnation/, 'and the copy is shut out');
$copy->stop;
is_normal($node, 'the original');

# ---- an older state in the place of the present one -------------------------------------------------

# put_back replaces the data folder by a backup, as a restore on the same server does.
sub put_back
{
	my ($backup) = @_;
	my $data = $node->data_dir;

	rename $data, "$data.aside" or die $!;
	system_or_bail('cp', '-a', $node->backup_dir . "/$backup", $data);
	chmod 0700, $data or die $!;
	$node->append_conf('postgresql.conf', "port = @{[$node->port]}");
	$node->start;
	return;
}

sub put_away
{
	my $data = $node->data_dir;

	$node->stop;
	system_or_bail('rm', '-rf', $data);
	rename "$data.aside", $data or die $!;
	return;
}
$node->stop('immediate');
put_back('cold');
like(why($node), qr/^quarantined: the witness file names another incarnation/, 'a cold backup in the place of its original');
is(look($node), 'quarantined', 'is an older state');
put_away();
$node->start;
is_normal($node, 'the present state again');

$node->backup('hot');
$node->safe_psql('postgres', q(SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'lost', 1, sha256('d')); SELECT pg_switch_wal();
  SELECT FROM limitledger.reserve_capacity('t1', 'chat', 'lost too', 1, sha256('d')); SELECT pg_switch_wal(); CHECKPOINT));
is_normal($node, 'after a backup, without another start');
$node->stop('immediate');
put_back('hot');
like(why($node), qr/^quarantined: the write-ahead log ends before/, 'a hot backup of this very incarnation, restored without its log');
is(look($node), 'quarantined', 'is an older state, too');
is($node->safe_psql('postgres', $FENCES), '2000005 2000000', 'which knows the fences of then');
run_drill($node, 'restored', 'normal');
is($node->safe_psql('postgres', $FENCES), '3000005 3000000', 'and skips those that it may have forgotten');
is_normal($node, 'acknowledged, it');
put_away();
$node->start;
is(look($node), 'quarantined', 'and what it replaced does not come back');
$node->safe_psql('postgres', "SELECT FROM limitledger.acknowledge_recovery('for the rest of this test')");

# ---- dumps ---------------------------------------------------------------------------------------------

sub run_ok
{
	my ($on, @command) = @_;
	my $said = '';

	local %ENV = (%ENV, PGHOST => $on->host, PGPORT => $on->port);
	IPC::Run::run(\@command, '<', \undef, '>', \$said, '2>&1');
	is($?, 0, "@command[0 .. 1]") or diag($said);
	return;
}
run_ok($node, 'pg_dump', '-Fc', '-f', "$folder/dump", 'postgres');
$node->safe_psql('postgres', $_) for 'CREATE DATABASE elsewhere TEMPLATE template0', "ALTER DATABASE elsewhere SET limitledger.witness_file = '$file'";
run_ok($node, 'pg_restore', '--exit-on-error', '-d', 'elsewhere', "$folder/dump");
like(why($node, 'elsewhere'), qr/^quarantined: the ledger was acknowledged in another database/, 'a dump restored into another database, with the same file');
is(look($node, 'elsewhere'), 'quarantined', 'does not pass for it');
$node->safe_psql('postgres', 'CREATE DATABASE templated TEMPLATE elsewhere');
like(why($node, 'templated'), qr/^quarantined: the ledger was acknowledged in another database/, 'nor a database made from it, without a file');
my $server = PostgreSQL::Test::Cluster->new('server');
$server->init;
$server->start;
run_ok($server, 'pg_restore', '--exit-on-error', '-d', 'postgres', "$folder/dump") if $server->safe_psql('postgres',
	join ';', map({ "CREATE ROLE $_" } qw(auditor operator monitor)), 'SELECT 1');
$server->safe_psql('postgres', "ALTER DATABASE postgres SET limitledger.witness_file = '$file'");
like(why($server), qr/^quarantined: the ledger was acknowledged on another server/, 'a dump restored on another server');
$server->stop;
is_normal($node, 'the original');
run_ok($node, 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', 'postgres', "$folder/dump");
like(why($node), qr/^quarantined: the ledger was restored from a dump/, 'a dump restored over the original');
is(look($node), 'quarantined', 'is an older state');
is($node->safe_psql('postgres', "SELECT status_before FROM limitledger.acknowledge_recovery('restored')"), 'quarantined', 'that an operator acknowledges');
is_normal($node, 'it');

# ---- promotion --------------------------------------------------------------------------------------------

$node->backup('base');
my $standby = copy('standby', 'base', has_streaming => 1);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
like($standby->safe_psql('postgres', 'SELECT status, detail, incarnation FROM limitledger.recovery_status()'), qr/^standby\|\|$UUID$/, 'a standby judges nothing');
fails_with($standby, 'SELECT limitledger.recovery_look()', '25006', 'and writes nothing');
$session = session($standby);
is($session->query_safe("$OFF SELECT status FROM limitledger.recovery_status()"), 'standby', 'a session from before the promotion');
$standby->promote;
is(why($standby), 'promoted: the server is on another timeline than was acknowledged', 'a standby that was promoted');
@was = stat $file;
is(look($standby), 'promoted', 'pauses');
is((stat $file)[1], $was[1], 'and leaves the file to the primary');
is($session->query_safe("SELECT outcome FROM limitledger.reserve_capacity('t1', 'chat', 'promoted', 1, sha256('d'))"), 'ACCEPTED', 'everything else goes on at once');
is($session->query_safe('SELECT limitledger.recovery_look()'), 'promoted', 'in that session, too');
$session->quit;
is_normal($node, 'the old primary, until somebody decides');
my $fences = $standby->safe_psql('postgres', $FENCES);
run_drill($standby, 'promotion', 'normal');
is_normal($standby, 'the new primary');
isnt($standby->safe_psql('postgres', $FENCES), $fences, 'it skips fences that may not have reached it');
is($standby->safe_psql('postgres', 'SELECT timeline FROM limitledger.recovery_status()'), '2', 'on its timeline');
like(why($node), qr/^quarantined: the witness file names another incarnation/, 'and the old one is out');
is($standby->safe_psql('postgres', 'SELECT * FROM limitledger.verify_conservation()'), '', 'the books balance');
unlike(slurp_file($_->logfile), qr/PANIC|LL90[13]/, 'nothing is broken') for $node, $standby;

$standby->stop;
$node->stop;
done_testing();

# ---- drills ----------------------------------------------------------------------------------------------------

# drills returns the shell blocks of the chapter on copies, by their names.
sub drills
{
	my ($chapter) = slurp_file("$FindBin::RealBin/../../docs/shards.md") =~ /^## Copies\n(.*?)(?:^## |\z)/ms;

	return $chapter =~ /<!-- drill: (\w+) -->\n+```sh\n(.*?)^```/msg;
}

# run_drill runs one as it stands, but for its folder and its database.
sub run_drill
{
	my ($on, $name, $status, %other) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $said = '';
	my $block = $DRILL{$name} =~ s/\bapp\b(?!\.witness)/postgres/gr;

	$block =~ s/\Q$_\E/$other{$_}/g for keys %other;
	$block =~ s{/var/lib/limitledger}{$folder}g;
	local %ENV = (%ENV, PGHOST => $on->host, PGPORT => $on->port, PGUSER => getpwuid($>) . '');
	IPC::Run::run([ 'sh', '-ec', $block ], '<', \undef, '>', \$said, '2>&1');
	is($?, 0, "the drill '$name' runs as documented") or diag($block, $said);
	is(status($on), $status, "after the drill '$name': $status");
	return;
}
