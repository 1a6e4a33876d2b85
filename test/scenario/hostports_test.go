//go:build e2e

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
)

// web returns a container with host ports.
func web() string {
	return server("c") +
		fmt.Sprintf("ports = [{ containerPort = 8080, hostPort = 18080 }, { containerPort = 8080, hostPort = 18080, protocol = \"UDP\" },"+
			" { containerPort = 8080, hostPort = 18081, hostIP = %q }]\n", host4)
}

// answers waits until a host port answers from a network namespace as this pod, and reports this client address; "" matches any.
func (f *fixture) answers(from space, network, address, pod, sees string) {
	f.Helper()
	f.Await(func() error {
		got, err := from.whoami(f.Ctx(), network, address)
		if name, seen, _ := strings.Cut(got, " "); err == nil && (name != pod || sees != "" && seen != sees) {
			err = fmt.Errorf("response of %s %s: %q, want pod %q and client %q", network, address, got, pod, sees)
		}
		return err
	})
}

// TestHostPorts: a host port can be reached from the host, another host, another pod and the pod itself.
func TestHostPorts(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	p := f.start("web", web())
	other := f.start("other", server("c"))
	for _, network := range []string{"tcp", "udp"} {
		f.answers("", network, "127.0.0.1:18080", "web", "")
		f.answers("", network, host4+":18080", "web", "")
		f.answers(outside, network, host4+":18080", "web", outside4)
		f.answers(outside, network, "["+host6+"]:18080", "web", outside6)
	}
	f.answers(outside, "tcp", host4+":18081", "web", outside4)
	for _, ip := range []string{other.Status.PodIP, p.Status.PodIP} { // another pod, and the pod itself
		for _, host := range []string{host4, "[" + host6 + "]"} {
			if got := f.inside(ip, "/fetch", "url", "http://"+host+":18080/whoami"); !strings.HasPrefix(got, "web ") {
				t.Errorf("from %s over TCP, %s answered %q", ip, host, got)
			}
			if got := f.inside(ip, "/datagram", "to", host+":18080"); !strings.HasPrefix(got, "web ") {
				t.Errorf("from %s over UDP, %s answered %q", ip, host, got)
			}
		}
	}
	for _, closed := range []string{"127.0.0.1:18081", "[" + host6 + "]:18081"} { // the port is on another address
		if got, err := space("").whoami(f.Ctx(), "tcp", closed); err == nil {
			t.Errorf("%s answered %q", closed, got)
		}
	}
	if out, err := space("").get(f.Ctx(), "http://"+p.Status.PodIP+":8080/fetch?url=http://"+outside4+":1/"); err == nil ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("from the pod, a closed port of another host: %q, %v, want refused", out, err)
	}
	f.MustRun("delete", "web", "--grace-period", "2")
	if got, err := outside.whoami(f.Ctx(), "tcp", host4+":18080"); err == nil {
		t.Errorf("after the pod was deleted its port answered %q", got)
	}
	again := f.start("web", web())
	if was, is := p.Status.PodIPs, again.Status.PodIPs; fmt.Sprint(was) != fmt.Sprint(is) {
		t.Errorf("addresses were %v, are %v after the pod was created again", was, is)
	}
	f.answers(outside, "udp", host4+":18080", "web", outside4)
}

// TestHostPortConflict: a pod whose host port is in use is rejected before anything starts. The message names the user of the port.
func TestHostPortConflict(t *testing.T) {
	f := newFixture(t)
	f.uplink()
	f.start("web", web())
	l, err := net.Listen("tcp", "127.0.0.1:18090")
	f.Check(err)
	t.Cleanup(func() { _ = l.Close() })
	for _, test := range []struct{ name, ports, want string }{
		{"tcp", `{ containerPort = 80, hostPort = 18080 }`, `host port 18080/TCP is in use by pod "web"`},
		{"udp", `{ containerPort = 80, hostPort = 18080, protocol = "UDP" }`, `host port 18080/UDP is in use by pod "web"`},
		{"address", `{ containerPort = 80, hostPort = 18080, hostIP = "127.0.0.1" }`, `in use by pod "web"`},
		{"one-of-all", `{ containerPort = 80, hostPort = 18081 }`, `in use by pod "web"`},
		{"process", `{ containerPort = 80, hostPort = 18090 }`, fmt.Sprintf("(process %d)", os.Getpid())},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := f.of(t)
			file := f.PodFile("second", server("c")+"ports = ["+test.ports+"]\n")
			out, err := f.Podstead(f.Ctx(), "run", file)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), `pod "second" rejected`) {
				t.Errorf("podstead run: %v, output %q, want exit code 1 and %q", err, out, test.want)
			}
			if pods := f.MustRun("get", "-o", "name"); pods != "pod/web\n" {
				t.Errorf("pods: %q", pods)
			}
			events := regexp.MustCompile(`(?m)^.*second.*$`).FindAllString(f.MustRun("events"), -1)
			events = slices.DeleteFunc(events, func(line string) bool { return strings.Contains(line, "Pod rejected: NodePorts: ") })
			if len(events) > 0 {
				t.Errorf("other events of the rejected pod: %q", events)
			}
		})
	}
	f.start("third", server("c")+`ports = [{ containerPort = 8080, hostPort = 18081, hostIP = "127.0.0.1" }]`+"\n")
	f.answers("", "tcp", "127.0.0.1:18081", "third", "")
}

// TestConnectionsSurviveDaemonRestart: when the daemon is killed and restarted, connections are not interrupted, ports stay open and
// addresses do not change.
func TestConnectionsSurviveDaemonRestart(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	was := f.start("web", web())
	f.answers(outside, "tcp", host4+":18080", "web", outside4)
	ctx, cancel := context.WithCancel(f.Ctx())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: outside.dial}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host4+":18080/dribble", nil)
	f.Check(err)
	res, err := client.Do(q)
	f.Check(err)
	defer res.Body.Close()
	works := func(when string) {
		t.Helper()
		read := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(res.Body, make([]byte, 2)) // one byte per second, so the second byte is sent from now on
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Fatalf("%s: connection failed: %v", when, err)
			}
		case <-time.After(deadline):
			t.Fatalf("%s: no data on the connection", when)
		}
		for _, network := range []string{"tcp", "udp"} {
			f.answers(outside, network, host4+":18080", "web", outside4)
			f.answers("", network, "127.0.0.1:18080", "web", "")
		}
	}
	works("before")
	f.MustKillDaemon()
	works("without a daemon")
	f.MustRun("get")
	is := f.running("web")
	works("with the next daemon")
	if fmt.Sprint(was.Status.PodIPs) != fmt.Sprint(is.Status.PodIPs) || was.Metadata.UID != is.Metadata.UID {
		t.Errorf("addresses were %v, are %v", was.Status.PodIPs, is.Status.PodIPs)
	}
	if _, err := f.Podstead(f.Ctx(), "run", f.PodFile("second", web())); err == nil ||
		!strings.Contains(err.Error(), `in use by pod "web"`) {
		t.Errorf("the new daemon accepted a host port that is in use: %v", err)
	}
}

// TestDockerFirewall: pods work where iptables drops forwarded packets, as with Docker and ufw.
func TestDockerFirewall(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	docker := f.docker()
	p := f.start("web", web())
	echo, err := f.listen(outside)
	f.Check(err)
	works := func(when string) {
		t.Helper()
		for _, network := range []string{"tcp", "udp"} {
			f.answers(outside, network, host4+":18080", "web", outside4)
			f.answers(outside, network, "["+host6+"]:18080", "web", outside6)
		}
		for _, ip := range []string{outside4, "[" + outside6 + "]"} {
			if got := f.inside(p.Status.PodIP, "/fetch", "url", "http://"+ip+":"+echo+"/"); got != "outside" {
				t.Errorf("%s: a server on another host answered %q", when, got)
			}
		}
	}
	works("before")
	docker() // as a restart of Docker does
	f.start("next", server("c"))
	works("after the firewall was recreated")
	docker()
	f.MustKillDaemon()
	f.MustRun("get")
	works("after a restart of the daemon")
}

// docker creates iptables chains that drop forwarded packets, and returns a function that recreates them.
func (f *fixture) docker() (recreate func()) {
	f.Helper()
	c, err := nftables.New()
	f.Check(err)
	drop := nftables.ChainPolicyDrop
	families := []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}
	recreate = func() {
		f.Helper()
		for _, family := range families {
			table := c.AddTable(&nftables.Table{Name: "filter", Family: family})
			c.DelTable(table)
			table = c.AddTable(&nftables.Table{Name: "filter", Family: family})
			c.AddChain(&nftables.Chain{
				Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop,
			})
		}
		f.Check(c.Flush())
	}
	recreate()
	f.Cleanup(func() {
		for _, family := range families {
			c.DelTable(&nftables.Table{Name: "filter", Family: family})
		}
		if err := c.Flush(); err != nil {
			f.Error(err)
		}
	})
	return recreate
}

// listen serves the page "outside" in a network namespace until the test ends, and returns its port.
func (f *fixture) listen(s space) (port string, err error) {
	var l net.Listener
	err = s.do(func() (err error) {
		l, err = net.Listen("tcp", ":0")
		return err
	})
	if err != nil {
		return "", err
	}
	srv := &http.Server{
		ReadHeaderTimeout: deadline,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "outside") }),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	f.Cleanup(func() {
		_ = srv.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			f.Error(err)
		}
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, err
}
