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

// web is the container that has host ports.
func web() string {
	return server("c") + fmt.Sprintf("ports = [{ containerPort = 8080, hostPort = 18080 }, { containerPort = 8080, hostPort = 18080, protocol = \"UDP\" },"+
		" { containerPort = 8080, hostPort = 18081, hostIP = %q }]\n", machine4)
}

// answers waits until a host port answers to a space as the pod, which sees whom it should; "" stands for anybody.
func (f *fixture) answers(from space, network, address, pod, sees string) {
	f.Helper()
	f.Await(func() error {
		got, err := from.whoami(f.Ctx(), network, address)
		if name, seen, _ := strings.Cut(got, " "); err == nil && (name != pod || sees != "" && seen != sees) {
			err = fmt.Errorf("%s %s answered %q, want %q seen from %q", network, address, got, pod, sees)
		}
		return err
	})
}

// TestHostPorts: every way to a host port leads into the pod.
func TestHostPorts(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	p := f.start("web", web())
	other := f.start("other", server("c"))
	for _, network := range []string{"tcp", "udp"} {
		f.answers("", network, "127.0.0.1:18080", "web", "")
		f.answers("", network, machine4+":18080", "web", "")
		f.answers(outside, network, machine4+":18080", "web", outside4)
		f.answers(outside, network, "["+machine6+"]:18080", "web", outside6)
	}
	f.answers(outside, "tcp", machine4+":18081", "web", outside4)
	for _, ip := range []string{other.Status.PodIP, p.Status.PodIP} { // another pod, and the pod itself
		for _, machine := range []string{machine4, "[" + machine6 + "]"} {
			if got := f.inside(ip, "/fetch", "url", "http://"+machine+":18080/whoami"); !strings.HasPrefix(got, "web ") {
				t.Errorf("from %s, %s answered %q over TCP", ip, machine, got)
			}
			if got := f.inside(ip, "/datagram", "to", machine+":18080"); !strings.HasPrefix(got, "web ") {
				t.Errorf("from %s, %s answered %q over UDP", ip, machine, got)
			}
		}
	}
	for _, closed := range []string{"127.0.0.1:18081", "[" + machine6 + "]:18081"} { // the port is on another address
		if got, err := space("").whoami(f.Ctx(), "tcp", closed); err == nil {
			t.Errorf("%s answered %q", closed, got)
		}
	}
	if out, err := space("").get(f.Ctx(), "http://"+p.Status.PodIP+":8080/fetch?url=http://"+outside4+":1/"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("from the pod, a closed port outside answered %q, %v", out, err)
	}
	f.MustRun("delete", "web", "--grace-period", "2")
	if got, err := outside.whoami(f.Ctx(), "tcp", machine4+":18080"); err == nil {
		t.Errorf("after the pod is gone its port answered %q", got)
	}
	again := f.start("web", web())
	if was, is := p.Status.PodIPs, again.Status.PodIPs; fmt.Sprint(was) != fmt.Sprint(is) {
		t.Errorf("the pod had the addresses %v, and has %v after it was run again", was, is)
	}
	f.answers(outside, "udp", machine4+":18080", "web", outside4)
}

// TestHostPortConflict: a port that is taken is refused before anything starts, and the message says who has it.
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
		{"process", `{ containerPort = 80, hostPort = 18090 }`, fmt.Sprintf("(process %d) listens there", os.Getpid())},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := f.of(t)
			file := f.PodFile("second", server("c")+"ports = ["+test.ports+"]\n")
			out, err := f.Podstead(f.Ctx(), "run", file)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `pod "second" is refused`) {
				t.Errorf("it ended with %v and wrote %q, want status 1 and %q", err, out, test.want)
			}
			if pods := f.MustRun("get", "-o", "name"); pods != "pod/web\n" {
				t.Errorf("there are the pods %q", pods)
			}
			begun := regexp.MustCompile(`(?m)^.*second.*$`).FindAllString(f.MustRun("events"), -1)
			begun = slices.DeleteFunc(begun, func(line string) bool { return strings.Contains(line, "Pod rejected: NodePorts: ") })
			if len(begun) > 0 {
				t.Errorf("something was begun: %q", begun)
			}
		})
	}
	f.start("third", server("c")+`ports = [{ containerPort = 8080, hostPort = 18081, hostIP = "127.0.0.1" }]`+"\n")
	f.answers("", "tcp", "127.0.0.1:18081", "third", "")
}

// TestConnectionsOutliveTheDaemon: a kill of the daemon and its restart interrupt no connection, close no port and change no
// address.
func TestConnectionsOutliveTheDaemon(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	was := f.start("web", web())
	f.answers(outside, "tcp", machine4+":18080", "web", outside4)
	ctx, cancel := context.WithCancel(f.Ctx())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: outside.dial}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+machine4+":18080/dribble", nil)
	f.Check(err)
	res, err := client.Do(q)
	f.Check(err)
	defer res.Body.Close()
	works := func(when string) {
		t.Helper()
		read := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(res.Body, make([]byte, 2)) // one a second, so the second is sent from now on
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Fatalf("%s the connection broke: %v", when, err)
			}
		case <-time.After(deadline):
			t.Fatalf("%s the connection is dead", when)
		}
		for _, network := range []string{"tcp", "udp"} {
			f.answers(outside, network, machine4+":18080", "web", outside4)
			f.answers("", network, "127.0.0.1:18080", "web", "")
		}
	}
	works("at first")
	f.MustKillDaemon()
	works("without a daemon")
	f.MustRun("get")
	is := f.running("web")
	works("with the next daemon")
	if fmt.Sprint(was.Status.PodIPs) != fmt.Sprint(is.Status.PodIPs) || was.Metadata.UID != is.Metadata.UID {
		t.Errorf("the pod had %v, and has %v", was.Status.PodIPs, is.Status.PodIPs)
	}
	if _, err := f.Podstead(f.Ctx(), "run", f.PodFile("second", web())); err == nil || !strings.Contains(err.Error(), `in use by pod "web"`) {
		t.Errorf("the next daemon does not know who has the port: %v", err)
	}
}

// TestDockersFirewall: where iptables drops what is forwarded, as with Docker and ufw, pods reach the outside and are reached.
func TestDockersFirewall(t *testing.T) {
	f := newFixture(t)
	outside := f.uplink()
	docker := f.docker()
	p := f.start("web", web())
	echo, err := f.listen(outside)
	f.Check(err)
	works := func(when string) {
		t.Helper()
		for _, network := range []string{"tcp", "udp"} {
			f.answers(outside, network, machine4+":18080", "web", outside4)
			f.answers(outside, network, "["+machine6+"]:18080", "web", outside6)
		}
		for _, ip := range []string{outside4, "[" + outside6 + "]"} {
			if got := f.inside(p.Status.PodIP, "/fetch", "url", "http://"+ip+":"+echo+"/"); got != "outside" {
				t.Errorf("%s a server outside answered %q", when, got)
			}
		}
	}
	works("at first")
	docker() // Docker is restarted, and writes its chains anew
	f.start("next", server("c"))
	works("after the firewall was written anew")
	docker()
	f.MustKillDaemon()
	f.MustRun("get")
	works("after a restart of the daemon")
}

// docker makes the chains that drop what is forwarded, and returns what makes them anew.
func (f *fixture) docker() (again func()) {
	f.Helper()
	c, err := nftables.New()
	f.Check(err)
	drop := nftables.ChainPolicyDrop
	families := []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6}
	again = func() {
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
	again()
	f.Cleanup(func() {
		for _, family := range families {
			c.DelTable(&nftables.Table{Name: "filter", Family: family})
		}
		if err := c.Flush(); err != nil {
			f.Error(err)
		}
	})
	return again
}

// listen serves the page "outside" in a space until the test ends, and returns its port.
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
