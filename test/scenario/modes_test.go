//go:build e2e

package scenario

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// TestNetworkNone: pods have only a loopback, host ports are rejected, and hostNetwork works.
func TestNetworkNone(t *testing.T) {
	f := newFixture(t)
	f.Check(f.StopDaemon(f.Ctx()))
	f.Env = append(f.Env, "PODSTEAD_NETWORK_MODE=none")
	f.MustRun("get")
	p := f.start("isolated", shell("c", "echo links=$(ls /sys/class/net 2>/dev/null || ip -o link | cut -d: -f2)"+
		"; mkdir /www; echo hello > /www/index.html; httpd -p 127.0.0.1:80 -h /www; echo self=$(wget -q -O - http://127.0.0.1/)"+
		"; echo routes=$(ip route | wc -l); echo hosts=$(grep -c isolated /etc/hosts)"+idle))
	for what, want := range map[string]string{"links=": "lo", "self=": "hello", "routes=": "0", "hosts=": "1"} {
		if got := f.line("isolated", what); got != want {
			t.Errorf("output of the pod: %s%s, want %s", what, got, want)
		}
	}
	if len(p.Status.PodIPs) != 0 || p.Status.PodIP != "" {
		t.Errorf("addresses %v, want none", p.Status.PodIPs)
	}
	out, err := f.Podstead(f.Ctx(), "run", f.PodFile("ports", server("c")+"ports = [{ containerPort = 8080, hostPort = 18080 }]\n"))
	if err == nil || !strings.Contains(err.Error(), `host ports need network mode "bridge", or hostNetwork`) {
		t.Errorf("a host port was not rejected: %v\n%s", err, out)
	}
	f.start("hostnet", "hostNetwork = true\n"+server("c")+"ports = [{ containerPort = 18080, hostPort = 18080 }]\nenv.PORT = \"18080\"\n")
	f.Await(func() error {
		got, err := space("").whoami(f.Ctx(), "tcp", "127.0.0.1:18080")
		if err == nil && !strings.HasSuffix(got, " 127.0.0.1") {
			err = fmt.Errorf("response %q", got)
		}
		return err
	})
	if links, err := net.Interfaces(); err != nil || len(links) != 1 {
		t.Errorf("links %v, %v, want the loopback only", links, err)
	}
}

// TestHostNetwork: a pod with hostNetwork has the host's addresses, name, ports and hosts file. Other pods reach it by name.
func TestHostNetwork(t *testing.T) {
	f := newFixture(t)
	f.uplink()
	name, err := os.Hostname()
	f.Check(err)
	p := f.start("hostnet", "hostNetwork = true\nhostAliases = [{ ip = \"192.0.2.7\", hostnames = [\"elsewhere\"] }]\n"+server("c")+
		"env.IP.fieldRef = { fieldPath = \"status.podIP\" }\nenv.HOST.fieldRef = { fieldPath = \"status.hostIP\" }\n"+
		"ports = [{ containerPort = 8080 }]\n")
	if p.Status.PodIP != host4 {
		t.Errorf("pod IP %q, want the host's, %s", p.Status.PodIP, host4)
	}
	if got, want := f.inside("127.0.0.1", "/whoami"), name+" 127.0.0.1"; got != want {
		t.Errorf("response on the host's loopback: %q, want %q", got, want)
	}
	env := f.inside(host4, "/env")
	for _, want := range []string{"IP=" + host4, "HOST=" + host4} {
		if !strings.Contains(env+"\n", "\n"+want+"\n") {
			t.Errorf("the environment lacks %s:\n%s", want, env)
		}
	}
	hosts, err := os.ReadFile("/etc/hosts")
	f.Check(err)
	if got := f.inside(host4, "/file", "path", "/etc/hosts"); !strings.Contains(got, strings.TrimSpace(string(hosts))) ||
		!strings.Contains(got, "192.0.2.7\telsewhere") {
		t.Errorf("/etc/hosts lacks the host's entries or the alias:\n%s", got)
	}

	// Its ports are the host's, so no other pod can have them.
	out, err := f.Podstead(f.Ctx(), "run", f.PodFile("second", server("c")+"ports = [{ containerPort = 8080, hostPort = 8080 }]\n"))
	if err == nil || !strings.Contains(err.Error(), `in use by pod "hostnet"`) {
		t.Errorf("a second pod with its port was not rejected: %v\n%s", err, out)
	}
	other := f.start("other", server("c"))
	if got, want := f.inside(other.Status.PodIP, "/fetch", "url", "http://hostnet:8080/whoami"), name+" "+other.Status.PodIP; got != want {
		t.Errorf("response to a pod, by name: %q, want %q", got, want)
	}
	f.hosts(host4, "with the other pod", func(names map[string][]string) bool { return len(names["other"]) == 2 })
}
