# Slot.pm
#	  A copy of the tree, and of PostgreSQL's folders to install it into, so that a
#	  changed source can be built and run and nothing of this machine changes.
#
# test/mutants/run and test/gate/plant take one rule out of the code at a time in it.

package Slot;

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

our $TOP = abs_path(dirname(__FILE__) . '/../..');
my $original = $ENV{PG_CONFIG} || '/usr/lib/postgresql/15/bin/pg_config';

# read_list: a change is a paragraph.  Name, rule, file and tests are on its first
# line, then comes the text that goes and, behind =>, what comes instead.
sub read_list {
    my ($path) = @_;
    my @found;
    for my $paragraph (split /\n{2,}/, slurp($path)) {
        my ($head, @lines) = grep { !/^#/ } split /\n/, $paragraph;
        next unless defined $head;
        my ($name, $rule, $file, @tests) = split ' ', $head;
        my ($gone, $come) = split /^=>\n?/m, join("\n", @lines) . "\n", 2;
        die "$path: $name lacks =>\n" unless defined $come;
        die "$path: $name is there twice\n" if grep { $_->{name} eq $name } @found;
        chomp($gone, $come);
        push @found, { name => $name, rule => $rule, file => $file, tests => \@tests, gone => $gone, come => $come };
    }
    return @found;
}

# new makes a slot in an empty folder: a PostgreSQL that finds its folders beside
# itself, and the tree, built once with these goals (`all install` for the module),
# so that a change compiles only what it changes.
sub new {
    my ($class, $folder, @goals) = @_;
    my $self = bless { folder => $folder, tree => "$folder/clean" }, $class;
    mkdir $folder or die "slot: $folder: $!\n";
    for my $part (qw(bindir pkglibdir sharedir includedir includedir-server)) {
        chomp(my $from = `'$original' --$part`);
        $self->quietly("mkdir -p '$folder/pg$from' && cp -a '$from/.' '$folder/pg$from/'")
          or die "slot: can't copy PostgreSQL's $part\n";
    }
    $self->quietly("mkdir '$folder/clean' && cd '$TOP' && tar -cf - --exclude=./.git . | tar -xf - -C '$folder/clean'")
      or die "slot: the tree was not copied\n";
    $self->build($_) or die "slot: the tree does not build\n", slurp("$folder/log") for 'clean', @goals;
    return $self;
}

# change makes one change in a new copy of the clean tree; says what was wrong, or nothing.
sub change {
    my ($self, $change) = @_;
    my ($folder, $path) = ($self->{folder}, "$self->{folder}/tree/$change->{file}");
    $self->quietly("rm -rf '$folder/tree' && cp -a '$folder/clean' '$folder/tree'") or return 'the tree was not copied';
    $self->{tree} = "$folder/tree";
    my $text  = slurp($path);
    my $found = () = $text =~ /\Q$change->{gone}\E/g;
    return "its text is $found times in $change->{file}" if $found != 1;
    substr $text, index($text, $change->{gone}), length $change->{gone}, $change->{come};
    open my $out, '>', $path or return "$path: $!";
    print $out $text;
    close $out or return "$path: $!";
    return '';
}

sub build {
    my ($self, $goals) = @_;
    return $self->quietly("make -s -C '$self->{tree}' with_llvm=no PG_CONFIG='@{[$self->pg_config]}' $goals");
}

# pg_config is that of the slot's own PostgreSQL.
sub pg_config { return "$_[0]{folder}/pg$original" }

sub quietly {
    my ($self, $command) = @_;
    return system("{ $command; } >'$self->{folder}/log' 2>&1 </dev/null") == 0;
}

# last_line of what the last quiet command said.
sub last_line {
    my ($self) = @_;
    my @lines = split /\n/, slurp("$self->{folder}/log");
    return @lines ? $lines[-1] : 'it said nothing';
}

sub slurp {
    my ($path) = @_;
    open my $in, '<', $path or return '';
    local $/;
    return scalar(<$in>) // '';
}

1;
