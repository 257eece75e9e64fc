# Psql.pm
#	  A connection that stays open: one psql as a child process.
#
# send() returns at once, so that several connections can be in the middle of a
# statement at the same time; rows() waits for the answer.

package Psql;

use strict;
use warnings;
use IO::Select;
use IPC::Open3 qw(open3);
use Time::HiRes qw(time sleep);

use constant PATIENCE => 60;    # seconds for one answer
my $FIELD = "\x1f";
my $END   = "-- end of answer --\n";

# new opens a connection; `name` is who it stands for, here and in pg_stat_activity.
sub new {
    my ($class, $psql, $host, $database, $name) = @_;
    local $SIG{PIPE} = 'IGNORE';
    local $ENV{PGAPPNAME} = $name;
    my $pid = open3(my $in, my $out, undef, $psql, '-XqA', '-F', $FIELD, '-P', 'footer=off',
        '-P', 'null=\\N', '-h', $host, '-U', 'postgres', '-d', $database);
    my $self = bless { name => $name, pid => $pid, in => $in, out => $out, text => '' }, $class;
    $self->{backend} = $self->ask('SELECT pg_backend_pid() AS pid')->{pid};
    return $self;
}

sub name    { return $_[0]{name} }
sub backend { return $_[0]{backend} }

# send hands one statement over and does not wait.
sub send {
    my ($self, $sql) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $all = "$sql;\n\\echo $END";
    while (length $all) {
        my $n = syswrite $self->{in}, $all;
        die "$self->{name}: psql is gone\n" unless $n;
        substr($all, 0, $n) = '';
    }
    return $self;
}

# rows waits for the answer: a list of rows, each a hash by column name.
sub rows {
    my ($self) = @_;
    my $until = time + PATIENCE;
    my $select = IO::Select->new($self->{out});
    my $end;
    while (($end = index $self->{text}, $END) < 0) {
        next if !$select->can_read(1) && time < $until;
        die "$self->{name}: no answer\n" if time >= $until;
        sysread($self->{out}, $self->{text}, 65536, length $self->{text})
          or die "$self->{name}: psql ended: $self->{text}\n";
    }
    my @lines = split /\n/, substr($self->{text}, 0, $end + length $END, '');
    pop @lines;
    die "$self->{name}: @lines\n" if grep { /^(?:psql:|ERROR:|FATAL:)/ } @lines;
    my @names = split /$FIELD/, shift @lines // '';
    return map {
        my %row;
        @row{@names} = map { $_ eq '\\N' ? undef : $_ } split /$FIELD/, $_, -1;
        \%row;
    } @lines;
}

# ask sends and waits; the first row.
sub ask {
    my ($self, $sql) = @_;
    return ($self->send($sql)->rows)[0];
}

# is_waiting tells, as seen by another connection, whether this one's statement
# waits for a lock.
sub is_waiting {
    my ($self, $observer) = @_;
    return $observer->ask("SELECT count(*) AS n FROM pg_stat_activity"
          . " WHERE pid = $self->{backend} AND wait_event_type = 'Lock'")->{n};
}

# wait_until polls for at most PATIENCE seconds.
sub wait_until {
    my ($what, $test) = @_;
    my $until = time + PATIENCE;
    until ($test->()) {
        die "waited in vain: $what\n" if time > $until;
        sleep 0.01;
    }
    return;
}

# crash kills the client in the middle of whatever it does.
sub crash {
    my ($self) = @_;
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
    close $self->{$_} for qw(in out);
    undef $self->{pid};
    return;
}

sub DESTROY {
    my ($self) = @_;
    return unless $self->{pid};
    local ($?, $!, $@);
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
