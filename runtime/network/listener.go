package network

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

// portInUse reports whether a process listens on the port, by binding it in the network namespace of the calling thread. With
// SO_REUSEADDR, bind fails for TCP only if a socket listens. The socket never listens itself, so it disturbs no other
// process. SCTP is not checked.
func portInUse(p Port) (bool, error) {
	kind := unix.SOCK_STREAM
	switch protocolNumbers[p.Protocol] {
	case unix.IPPROTO_UDP:
		kind = unix.SOCK_DGRAM
	case unix.IPPROTO_SCTP:
		return false, nil
	}
	for _, is4 := range []bool{true, false} {
		if !p.Serves(is4) {
			continue
		}
		err := tryBind(kind, is4, p)
		switch {
		case errors.Is(err, unix.EADDRINUSE):
			return true, nil
		case err == nil, errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT):
			// Free, or the host does not have this address yet, or not this address family.
		default:
			return false, fmt.Errorf("check for listeners on %s: %w", p, err)
		}
	}
	return false, nil
}

func tryBind(kind int, is4 bool, p Port) error {
	family := unix.AF_INET6
	if is4 {
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
	if err == nil && !is4 {
		err = unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err != nil {
		return err
	}
	ip := p.HostIP
	switch {
	case is4 && !ip.IsValid():
		ip = netip.IPv4Unspecified()
	case !ip.IsValid():
		ip = netip.IPv6Unspecified()
	}
	if is4 {
		return unix.Bind(socket, &unix.SockaddrInet4{Port: int(p.HostPort), Addr: ip.As4()})
	}
	return unix.Bind(socket, &unix.SockaddrInet6{Port: int(p.HostPort), Addr: ip.As16()})
}

// portListener finds the process with a socket on the port in /proc. It returns zero values if it finds none.
func portListener(p Port) (pid int, process string) {
	table := "tcp"
	if protocolNumbers[p.Protocol] == unix.IPPROTO_UDP {
		table = "udp"
	}
	sockets := map[string]bool{}
	for _, name := range []string{table, table + "6"} {
		raw, err := os.ReadFile("/proc/thread-self/net/" + name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if inode, ok := socketOn(line, p.HostPort, table == "tcp"); ok {
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
