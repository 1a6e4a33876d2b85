//go:build e2e

package rootless_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/network"
)

// server is a pod whose server answers with its name and the address of the client, over TCP and UDP. It takes a name, the path of an image
// archive, and the fields of its ports.
const server = `name = %q
imageArchives = [%q]
terminationGracePeriodSeconds = 1

[[containers]]
name = "server"
image = "localhost/podstead/testserver:1"
ports = [%s]
readinessProbe = { httpGet = { port = 8080, path = "/healthz" }, periodSeconds = 1 }
`

const (
	tcpPort = "{ containerPort = 8080, hostPort = 18080 }"
	udpPort = "{ containerPort = 8080, hostPort = 18080, protocol = 'UDP' }"
)

// serve writes the file of a pod of server and returns its path.
func (p *person) serve(t *testing.T, name string, ports ...string) string {
	t.Helper()
	file := filepath.Join(p.dir, name+".toml")
	text := fmt.Sprintf(server, name, filepath.Join(p.dir, "examples/images/testserver.tar"), strings.Join(ports, ", "))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// talk is a connection to a server.
type talk struct {
	net.Conn
	in *bufio.Reader
}

// dial connects to a port of the host from a network namespace.
func dial(from network.Namespace, protocol, address, port string) (*talk, error) {
	var conn net.Conn
	err := from.Do(func() (err error) { // for a literal address, package net starts no goroutine
		conn, err = (&net.Dialer{Timeout: 10 * time.Second}).Dial(protocol, net.JoinHostPort(address, port))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &talk{conn, bufio.NewReader(conn)}, nil
}

// whoami returns the answer of the server.
func (c *talk) whoami() (string, error) {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if c.LocalAddr().Network() == "udp" {
		if _, err := io.WriteString(c, "who am I"); err != nil {
			return "", err
		}
		line, err := c.in.ReadString('\n')
		return strings.TrimSpace(line), err
	}
	if _, err := io.WriteString(c, "GET /whoami HTTP/1.1\r\nHost: pod\r\n\r\n"); err != nil {
		return "", err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return strings.TrimSpace(string(text)), err
}

// ask connects to a server, which answers with the address of the client that it sees.
func ask(from network.Namespace, protocol, address, port string) (string, error) {
	c, err := dial(from, protocol, address, port)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.whoami()
}

// gateway returns the addresses of the gateway that a pod sees.
func (p *person) gateway(t *testing.T, pod string) (v4, v6 string) {
	t.Helper()
	ip := strings.TrimSpace(p.run(t, "podstead", "get", pod, "-o", "jsonpath={.status.podIPs[0].ip}"))
	v4 = ip[:strings.LastIndexByte(ip, '.')] + ".1"
	ip = strings.TrimSpace(p.run(t, "podstead", "get", pod, "-o", "jsonpath={.status.podIPs[1].ip}"))
	return v4, ip[:strings.LastIndexByte(ip, ':')] + ":1"
}

// The IPv6 addresses of the host and of the other host.
const hostAddress6, outsideAddress6 = "2001:db8:1::1", "2001:db8:1::2"

// addIPv6 gives a link in a network namespace an IPv6 address.
func addIPv6(t *testing.T, in network.Namespace, name, address string) {
	t.Helper()
	if err := in.Do(func() error {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		ip := &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(64, 128)}
		return h.AddrAdd(link, &netlink.Addr{IPNet: ip, Flags: unix.IFA_F_NODAD})
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPorts connects to host ports of a pod from the host and from another host, and kills what forwards them.
func TestPorts(t *testing.T) {
	outside, host := newHost(t), network.Namespace{}
	addIPv6(t, host, "up0", hostAddress6)
	addIPv6(t, outside, "up1", outsideAddress6)
	p := newPerson(t)
	p.run(t, "podstead", "apply", "--wait", "--timeout", "3m", p.serve(t, "web", tcpPort, udpPort))
	gateway4, gateway6 := p.gateway(t, "web")
	for _, test := range []struct {
		from          network.Namespace
		address, want string
	}{
		{outside, hostAddress, outsideAddress},
		{outside, hostAddress6, outsideAddress6},
		{host, hostAddress, hostAddress},
		{host, hostAddress6, hostAddress6},
		{host, "127.0.0.1", gateway4},
		{host, "127.0.0.2", gateway4},
		{host, "::1", gateway6},
	} {
		for _, protocol := range []string{"tcp", "udp"} {
			if got, err := ask(test.from, protocol, test.address, "18080"); err != nil || got != "web "+test.want {
				t.Errorf("%s to %s: %q, %v, want the source %s", protocol, test.address, got, err, test.want)
			}
		}
	}
	out, errs, _ := p.try(t, "podstead", "doctor") // the test has its own reasons to fail
	if !strings.Contains(out, "the forwarder runs, PID ") {
		t.Errorf("doctor does not report the forwarder:\n%s%s", out, errs)
	}
	t.Run("pods", func(t *testing.T) { p.testPortsFromPod(t, gateway4) })
	t.Run("killed", func(t *testing.T) { p.testForwarderKilled(t, outside) })
	t.Run("upgrade", func(t *testing.T) { p.testUpgrade(t, outside) })
	t.Run("compose", func(t *testing.T) { p.testCompose(t, outside) })
	_, worker := p.forwarder(t)
	open, err := dial(outside, "tcp", hostAddress, "18080")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	p.upgrade(t, "last build")
	if all := p.processes(workerProcess); len(all) != 2 || !slices.Contains(all, worker) {
		t.Errorf("workers %v, want %d and another one", all, worker)
	}
	p.run(t, "podstead", "daemon", "stop", "--pods")
	if got, err := ask(host, "tcp", "127.0.0.1", "18080"); err == nil {
		t.Errorf("the port of a deleted pod answers %q", got)
	}
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// Texts in the command lines of the daemon, of both processes of the forwarder, and of its worker alone.
const daemonProcess, forwarderProcess, workerProcess = "podstead daemon", "podstead-monitor forwarder ", "ports.sock worker"

// forwarder returns the processes that forward ports: the first one and the worker.
func (p *person) forwarder(t *testing.T) (first, worker int) {
	t.Helper()
	worker = p.one(t, workerProcess)
	for _, pid := range p.processes(forwarderProcess) {
		if pid != worker {
			first = pid
		}
	}
	if first == 0 {
		t.Fatal("the first process of the forwarder does not run")
	}
	return first, worker
}

// testForwarderKilled kills the daemon, which connections survive, and the forwarder.
func (p *person) testForwarderKilled(t *testing.T, outside network.Namespace) {
	open, err := dial(outside, "tcp", hostAddress, "18080")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	goesOn := func(when string) {
		t.Helper()
		if got, err := open.whoami(); err != nil || got != "web "+outsideAddress {
			t.Errorf("%s: an open connection: %q, %v", when, got, err)
		}
	}
	answers := func() bool {
		got, err := ask(outside, "tcp", hostAddress, "18080")
		return err == nil && got == "web "+outsideAddress
	}
	goesOn("before")
	kill(t, p.one(t, daemonProcess))
	goesOn("without a daemon")
	p.run(t, "podstead", "get")
	goesOn("with another daemon")
	if !answers() {
		t.Error("no new connection after a restart of the daemon")
	}
	_, worker := p.forwarder(t)
	kill(t, worker)
	if _, err := open.whoami(); err == nil {
		t.Error("a connection survived the forwarder")
	}
	await(t, answers) // the daemon sends the ports to another worker
	first, worker := p.forwarder(t)
	kill(t, first)
	if !answers() {
		t.Error("the worker does not forward alone")
	}
	p.run(t, "podstead", "get") // starts no other one
	if !answers() || p.one(t, workerProcess) != worker {
		t.Error("the worker was replaced")
	}
	kill(t, worker)
	p.run(t, "podstead", "get")
	await(t, answers)
	p.forwarder(t)
	p.run(t, "podstead", "restart", "--wait", "web")
	await(t, answers)
}

// upgrade installs another build of the program, and starts a daemon. Build is what is appended to the program.
func (p *person) upgrade(t *testing.T, build string) (program string) {
	t.Helper()
	program = filepath.Join(p.dir, "bin/podstead-monitor")
	text, err := os.ReadFile(program)
	if err == nil {
		err = errors.Join(os.WriteFile(program+".new", append(text, build...), 0o755), os.Rename(program+".new", program))
	}
	if err != nil {
		t.Fatal(err)
	}
	kill(t, p.one(t, daemonProcess))
	p.run(t, "podstead", "get")
	return program
}

// connects connects to the server of a port until it is stopped, and reports the first error.
func connects(t *testing.T, from network.Namespace, port string) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			default:
			}
			if got, err := ask(from, "tcp", hostAddress, port); err != nil || got != "web "+outsideAddress {
				t.Errorf("connection %d: %q, %v", n, got, err)
				return
			}
		}
	}()
	return func() { close(stopped); <-done }
}

// testUpgrade starts daemons after upgrades of the package. Another build forwards new connections, and none is refused. The one of before
// forwards those that are open, until they end.
func (p *person) testUpgrade(t *testing.T, outside network.Namespace) {
	first, before := p.forwarder(t)
	open, err := dial(outside, "tcp", hostAddress, "18080")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	flow, err := dial(outside, "udp", hostAddress, "18080")
	if err != nil {
		t.Fatal(err)
	}
	defer flow.Close()
	works := func(when string) {
		t.Helper()
		if got, err := open.whoami(); err != nil || got != "web "+outsideAddress {
			t.Errorf("%s: an open connection: %q, %v", when, got, err)
		}
		if got, err := flow.whoami(); err != nil || got != "web "+outsideAddress {
			t.Errorf("%s: a flow: %q, %v", when, got, err)
		}
	}
	answers := func(protocol string) func() bool {
		return func() bool {
			got, err := ask(outside, protocol, hostAddress, "18080")
			return err == nil && got == "web "+outsideAddress
		}
	}
	works("before")
	p.upgrade(t, "")
	if same, worker := p.forwarder(t); same != first || worker != before {
		t.Error("a copy of the program has replaced the forwarder")
	}
	works("after a new installation")

	stop := connects(t, outside, "18080")
	program := p.upgrade(t, "another build")
	await(t, func() bool { return executes(first, program) })
	await(t, answers("tcp"))
	stop()
	await(t, answers("udp"))
	works("after an upgrade")
	other := p.workerBeside(t, before)
	if !executes(other, program) || executes(before, program) {
		t.Errorf("worker %d does not execute the other build, or worker %d does", other, before)
	}
	kill(t, other)
	await(t, answers("tcp"))
	await(t, answers("udp"))
	works("after the other worker was killed")
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return !slices.Contains(p.processes(workerProcess), before) })

	// A worker that ends at once with its connections, before the daemon of the next build starts.
	same, worker := p.forwarder(t)
	if same != first {
		t.Errorf("the first process is %d, was %d", same, first)
	}
	if open, err = dial(outside, "tcp", hostAddress, "18080"); err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	works("before the end of the worker")
	kill(t, p.one(t, daemonProcess))
	if err := unix.Kill(worker, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return !slices.Contains(p.processes(workerProcess), worker) })
	if got, err := open.whoami(); err == nil {
		t.Errorf("a connection survived SIGTERM: %q", got)
	}
	p.run(t, "podstead", "get")
	p.upgrade(t, "third build")
	await(t, answers("tcp"))
	await(t, answers("udp"))
	await(t, func() bool { return executes(first, program) && executes(p.one(t, workerProcess), program) })

	// A forwarder that cannot leave its ports.
	record := filepath.Join(p.dir, "home/.local/share/podstead/namespaces.json")
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	const field = `,"forwarderHandsOver":true`
	if !strings.Contains(string(text), field) {
		t.Fatalf("%s: %s", record, text)
	}
	if err := os.WriteFile(record, []byte(strings.Replace(string(text), field, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "get")
	await(t, answers("tcp"))
	await(t, answers("udp"))
	if again, _ := p.forwarder(t); again == first {
		t.Error("a forwarder of an earlier version was not replaced")
	}
}

// workerBeside returns the worker of the forwarder that is not this one.
func (p *person) workerBeside(t *testing.T, before int) (worker int) {
	t.Helper()
	var all []int
	await(t, func() bool {
		all = p.processes(workerProcess)
		return len(all) == 2
	})
	if i := slices.Index(all, before); i >= 0 {
		return all[1-i]
	}
	t.Fatalf("workers %v, want %d and another one", all, before)
	return 0
}

// executes reports whether a process executes a program.
func executes(pid int, program string) bool {
	same, err := proc.Executes(pid, program)
	return same && err == nil
}

// TestPortErrors requests ports that a user cannot have.
func TestPortErrors(t *testing.T) {
	newHost(t)
	p, other := newPerson(t), newPerson(t)
	host := network.Namespace{}
	l, err := net.Listen("tcp", ":18081")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rejected := func(who *person, name, port string, want ...string) {
		t.Helper()
		_, errs, err := who.try(t, "podstead", "run", who.serve(t, name, port))
		for _, text := range append(want, "containers[0].ports[0].hostPort: ", "hint: ") {
			if err == nil || !strings.Contains(errs, text) {
				t.Errorf("%s: %v, %s, want %q", port, err, errs, text)
			}
		}
	}
	rejected(p, "busy", "{ containerPort = 8080, hostPort = 18081 }", "in use by a process of the host", "ss -lnp") // of root
	rejected(p, "low", "{ containerPort = 8080, hostPort = 80 }", "permission denied", "ip_unprivileged_port_start=80")
	rejected(p, "away", "{ containerPort = 8080, hostPort = 18080, hostIP = '192.0.2.9' }", "does not have the address 192.0.2.9",
		"ip address")
	p.run(t, "podstead", "apply", "--wait", "--timeout", "3m", p.serve(t, "web", tcpPort))
	forwarded := make(chan error, 1)
	go func() {
		_, _, err := p.try(t, "podstead", "port-forward", "web", "18083:8080")
		forwarded <- err
	}()
	await(t, func() bool { _, err := ask(host, "tcp", "127.0.0.1", "18083"); return err == nil })
	forwarding := p.one(t, "port-forward")
	rejected(p, "own", "{ containerPort = 8080, hostPort = 18083 }", fmt.Sprintf("in use by podstead (process %d)", forwarding))
	kill(t, forwarding)
	if err := <-forwarded; err == nil {
		t.Error("port-forward was not killed")
	}
	other.run(t, "podstead", "get")
	rejected(other, "taken", tcpPort, "in use by a process of the host")
	rejected(p, "second", tcpPort, `in use by pod "web"`)
	local := p.serve(t, "local", "{ containerPort = 8080, hostPort = 18082, hostIP = '127.0.0.1' }")
	p.run(t, "podstead", "apply", "--wait", "--timeout", "3m", local)
	if got, err := ask(host, "tcp", "127.0.0.1", "18082"); err != nil || !strings.HasPrefix(got, "local ") {
		t.Errorf("on the loopback: %q, %v", got, err)
	}
	if got, err := ask(host, "tcp", hostAddress, "18082"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port of the loopback on another address: %q, %v", got, err)
	}
	p.run(t, "podstead", "stop", "web")
	if got, err := ask(host, "tcp", "127.0.0.1", "18080"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the port of a stopped pod: %q, %v", got, err)
	}
	other.run(t, "podstead", "apply", "--wait", "--timeout", "3m", other.serve(t, "taken", tcpPort))
	if got, err := ask(host, "tcp", "127.0.0.1", "18080"); err != nil || !strings.HasPrefix(got, "taken ") {
		t.Errorf("the port of another user: %q, %v", got, err)
	}
	for _, one := range []*person{p, other} {
		one.run(t, "podstead", "daemon", "stop", "--pods")
		await(t, func() bool { return len(one.processes("")) == 0 })
	}
}

// testPortsFromPod connects to the host port from another pod, which reaches it by the rules in the namespaces, as with root.
func (p *person) testPortsFromPod(t *testing.T, gateway string) {
	file := filepath.Join(p.dir, "client.toml")
	text := `name = "client"
imageArchives = [%q]
restartPolicy = "Never"

[[containers]]
name = "client"
image = "localhost/podstead/busybox:1"
command = ["timeout", "60", "wget", "-qO-", "http://%s:18080/whoami"]
`
	for _, address := range []string{gateway, hostAddress} {
		text := fmt.Sprintf(text, filepath.Join(p.dir, "examples/images/busybox.tar"), address)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := p.run(t, "podstead", "run", file); !strings.Contains(out, "web "+gateway) {
			t.Errorf("host port at %s: %q", address, out)
		}
	}
}

// testCompose runs a Compose file with ports.
func (p *person) testCompose(t *testing.T, outside network.Namespace) {
	dir := filepath.Join(p.dir, "shop")
	text := `name: shop
services:
  api:
    image: localhost/podstead/testserver:1
  front:
    image: localhost/podstead/testserver:1
    depends_on: [api]
    ports:
      - "18084:8080"
      - "18084:8080/udp"
      - "127.0.0.1:18085:8080"
`
	file := filepath.Join(dir, "compose.yaml")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	p.run(t, "podstead", "image", "import", filepath.Join(p.dir, "examples/images/testserver.tar"))
	p.run(t, "podstead", "up", "-d", "--wait", "-f", file)
	for _, protocol := range []string{"tcp", "udp"} {
		await(t, func() bool { // started is not ready
			got, err := ask(outside, protocol, hostAddress, "18084")
			return err == nil && got == "front "+outsideAddress
		})
	}
	if _, err := ask(network.Namespace{}, "tcp", "127.0.0.1", "18085"); err != nil {
		t.Error(err)
	}
	if got, err := ask(outside, "tcp", hostAddress, "18085"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port of the loopback from another host: %q, %v", got, err)
	}
	p.run(t, "podstead", "down", "-f", file)
	if got, err := ask(outside, "tcp", hostAddress, "18084"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the port of a deleted pod: %q, %v", got, err)
	}
}
