# Proxy.pm
#	  A TCP proxy that loses messages between a client and a server, at a place
#	  that is known: it reads the PostgreSQL protocol, as far as lengths go.
#
#	  What to lose is a list of cuts, made in their order and once each:
#
#	    { after => qr/…/, at => qr/…/, lose => 'reply' | 'request' }
#
#	  The cut is made at the first message of a client that matches `at`, once a
#	  message has matched `after`, if that is given.  `request`: the message never
#	  arrives, nor does anything behind it.  `reply`: it arrives, and the client's
#	  connection breaks once the server has answered in full (ReadyForQuery), so
#	  what it asked for has been committed.

package Proxy;

use strict;
use warnings FATAL => 'all';

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();

use constant UNTYPED => { map { $_ => 1 } 80877103, 80877104 };    # SSLRequest, GSSENCRequest

# start listens on a port of 127.0.0.1 and passes on to a socket; the file gets
# a line for each cut that was made.
sub start
{
	my ($class, $path, $file, @cuts) = @_;
	my $listener = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1', Proto => 'tcp')
	  or die "proxy: $!";
	my $pid = fork() // die "proxy: $!";

	if ($pid == 0)
	{
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP __DIE__);
		$SIG{PIPE} = 'IGNORE';
		eval { run($listener, $path, $file, @cuts) };
		warn "proxy: $@";
		POSIX::_exit(1);    # no END block: those are the test's
	}
	my $port = $listener->sockport;
	close $listener;
	return bless { pid => $pid, port => $port, file => $file, owner => $$ }, $class;
}

sub port { return $_[0]{port} }

# cuts tells which cuts were made.
sub cuts
{
	my ($self) = @_;
	open(my $in, '<', $self->{file}) or return '';
	local $/;
	return <$in> // '';
}

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} // return;

	kill('TERM', $pid);
	waitpid($pid, 0);
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $!);
	$self->stop if $self->{owner} == $$;
}

sub run
{
	my ($listener, $path, $file, @cuts) = @_;
	my $select = IO::Select->new($listener);
	my %link;    # of a socket: the connection that it is an end of

	while (1)
	{
		for my $socket ($select->can_read)
		{
			if ($socket == $listener)
			{
				my $link = { client => scalar $listener->accept, read => '', typed => 0,
					server => IO::Socket::UNIX->new(Peer => $path) // die "$path: $!" };
				$link{$_} = $link, $select->add($_) for @$link{qw(client server)};
				next;
			}
			my $link = $link{$socket} // next;
			my $open = sysread($socket, my $bytes, 65536);
			$open &&= $socket == $link->{client} ? from_client($link, $bytes, $file, \@cuts) : from_server($link, $bytes);
			next if $open;
			for my $end (@$link{qw(client server)})
			{
				$select->remove($end);
				delete $link{$end};
				close $end;
			}
		}
	}
}

# from_client passes on whole messages; false: this connection is over.
sub from_client
{
	my ($link, $bytes, $file, $cuts) = @_;

	$link->{read} .= $bytes;
	while (defined(my $message = next_message($link)))
	{
		my $cut = $cuts->[0];

		delete $cut->{after} if $cut && defined $cut->{after} && $message =~ $cut->{after};
		if ($cut && !defined $cut->{after} && $message =~ $cut->{at})
		{
			shift @$cuts;
			open(my $out, '>>', $file) or die "$file: $!";
			print $out "$cut->{lose}\n";
			close $out;
			return 0 if $cut->{lose} eq 'request';
			$link->{mute} = '';
		}
		defined syswrite($link->{server}, $message) or return 0;
	}
	return 1;
}

# next_message takes a message off what was read, if it is all there.  The first
# one of a connection has no type, and neither has the one after a question about
# encryption.
sub next_message
{
	my ($link) = @_;
	my $type = $link->{typed} ? 1 : 0;

	return if length $link->{read} < 4 + $type;
	my $length = $type + unpack('N', substr($link->{read}, $type, 4));
	return if length $link->{read} < $length;
	my $message = substr($link->{read}, 0, $length, '');
	$link->{typed} ||= !UNTYPED->{ unpack('N', substr($message, 4, 4)) };
	return $message;
}

# from_server passes on, or swallows up to ReadyForQuery; false: it is over.
sub from_server
{
	my ($link, $bytes) = @_;

	return defined syswrite($link->{client}, $bytes) unless defined $link->{mute};
	$link->{mute} .= $bytes;
	while (length $link->{mute} >= 5)
	{
		my $length = 1 + unpack('N', substr($link->{mute}, 1, 4));

		last if length $link->{mute} < $length;
		return 0 if substr($link->{mute}, 0, 1) eq 'Z';
		substr($link->{mute}, 0, $length, '');
	}
	return 1;
}

1;
