package forwarder

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Check returns an [*Error] if the port cannot be bound in the network namespace of the calling thread, such as if a process listens on it.
// With SO_REUSEADDR, bind fails for TCP only if a socket listens. The socket never listens itself, so it disturbs no other process.
func Check(p Port) error {
	for _, addr := range p.addrs() {
		if err := tryBind(p.Protocol, netip.AddrPortFrom(addr, p.Port)); err != nil && !lacksFamily(p, err) {
			return bindError(p, err)
		}
	}
	return nil
}

// lacksFamily reports whether a port on all addresses cannot be bound because the host has no addresses of one family.
func lacksFamily(p Port, err error) bool {
	return !p.Addr.IsValid() && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT))
}

// bindError returns the error of a port that cannot be bound.
func bindError(p Port, err error) error {
	errno, is := errors.AsType[unix.Errno](err)
	if !is {
		return fmt.Errorf("host port %s: %w", p, err)
	}
	e := &Error{Port: p, Errno: errno}
	if errno == unix.EADDRINUSE {
		e.PID, e.Process = holder(p)
	}
	return e
}

func tryBind(protocol string, to netip.AddrPort) error {
	kind, family := unix.SOCK_STREAM, unix.AF_INET6
	if protocol == UDP {
		kind = unix.SOCK_DGRAM
	}
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	socket, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if kind == unix.SOCK_STREAM { // with SO_REUSEADDR, two UDP sockets can be bound to the same address
		err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err != nil {
		return err
	}
	return unix.Bind(socket, sockaddr(to))
}

// sockaddr returns an address without zone in the form of package unix.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// holder finds the process with a socket on the port in /proc. It returns zero values if it finds none.
func holder(p Port) (pid int, process string) {
	table := "tcp"
	if p.Protocol == UDP {
		table = "udp"
	}
	sockets := map[string]bool{}
	for _, name := range []string{table, table + "6"} {
		raw, err := os.ReadFile("/proc/thread-self/net/" + name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if inode, ok := socketOn(line, p.Port, table == "tcp"); ok {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil || !sockets[target] {
			continue
		}
		number := strings.Split(file, "/")[2]
		name, err := os.ReadFile("/proc/" + number + "/comm")
		if pid, bad := strconv.Atoi(number); err == nil && bad == nil {
			return pid, strings.TrimSpace(string(name))
		}
	}
	return 0, ""
}

// socketOn returns the inode of a socket on a local port from a line of /proc/net/tcp or /proc/net/udp.
func socketOn(line string, port uint16, listening bool) (inode string, ok bool) {
	const local, state, inodes, listen = 1, 3, 9, "0A"
	words := strings.Fields(line)
	if len(words) <= inodes || listening && words[state] != listen {
		return "", false
	}
	_, number, _ := strings.Cut(words[local], ":")
	n, err := strconv.ParseUint(number, 16, 16)
	return words[inodes], err == nil && uint16(n) == port
}
