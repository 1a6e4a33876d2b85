//go:build e2e

package scenario

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// TestNetworkNone: pods have a loopback that is up, and nothing else; host ports are refused; hostNetwork works.
func TestNetworkNone(t *testing.T) {
	f := newFixture(t)
	f.Check(f.StopDaemon(f.Ctx()))
	f.Env = append(f.Env, "PODSTEAD_NETWORK_MODE=none")
	f.MustRun("get")
	p := f.start("lonely", shell("c", "echo links=$(ls /sys/class/net 2>/dev/null || ip -o link | cut -d: -f2)"+
		"; mkdir /www; echo hello > /www/index.html; httpd -p 127.0.0.1:80 -h /www; echo self=$(wget -q -O - http://127.0.0.1/)"+
		"; echo routes=$(ip route | wc -l); echo hosts=$(grep -c lonely /etc/hosts)"+idle))
	for what, want := range map[string]string{"links=": "lo", "self=": "hello", "routes=": "0", "hosts=": "1"} {
		if got := f.line("lonely", what); got != want {
			t.Errorf("the pod says %s%s, want %s", what, got, want)
		}
	}
	if len(p.Status.PodIPs) != 0 || p.Status.PodIP != "" {
		t.Errorf("the pod has the addresses %v", p.Status.PodIPs)
	}
	out, err := f.Podstead(f.Ctx(), "run", f.PodFile("ports", server("c")+"ports = [{ containerPort = 8080, hostPort = 18080 }]\n"))
	if err == nil || !strings.Contains(err.Error(), `host ports need network mode "bridge", or hostNetwork`) {
		t.Errorf("a host port was not refused: %v\n%s", err, out)
	}
	f.start("machine", "hostNetwork = true\n"+server("c")+"ports = [{ containerPort = 18080, hostPort = 18080 }]\nenv.PORT = \"18080\"\n")
	f.Await(func() error {
		got, err := space("").whoami(f.Ctx(), "tcp", "127.0.0.1:18080")
		if err == nil && !strings.HasSuffix(got, " 127.0.0.1") {
			err = fmt.Errorf("it answered %q", got)
		}
		return err
	})
	if links, err := net.Interfaces(); err != nil || len(links) != 1 {
		t.Errorf("there are the links %v, %v, want the loopback alone", links, err)
	}
}

// TestHostNetwork: such a pod is the machine to others: its addresses, name, ports and hosts. Other pods find it by its name.
func TestHostNetwork(t *testing.T) {
	f := newFixture(t)
	f.uplink()
	name, err := os.Hostname()
	f.Check(err)
	p := f.start("machine", "hostNetwork = true\nhostAliases = [{ ip = \"192.0.2.7\", hostnames = [\"elsewhere\"] }]\n"+server("c")+
		"env.IP.fieldRef = { fieldPath = \"status.podIP\" }\nenv.HOST.fieldRef = { fieldPath = \"status.hostIP\" }\n"+
		"ports = [{ containerPort = 8080 }]\n")
	if p.Status.PodIP != machine4 {
		t.Errorf("the pod's address is %q, want the machine's, %s", p.Status.PodIP, machine4)
	}
	if got, want := f.inside("127.0.0.1", "/whoami"), name+" 127.0.0.1"; got != want {
		t.Errorf("on the machine's loopback it answered %q, want %q", got, want)
	}
	env := f.inside(machine4, "/env")
	for _, want := range []string{"IP=" + machine4, "HOST=" + machine4} {
		if !strings.Contains(env+"\n", "\n"+want+"\n") {
			t.Errorf("its environment has no %s:\n%s", want, env)
		}
	}
	machine, err := os.ReadFile("/etc/hosts")
	f.Check(err)
	if got := f.inside(machine4, "/file", "path", "/etc/hosts"); !strings.Contains(got, strings.TrimSpace(string(machine))) || !strings.Contains(got, "192.0.2.7\telsewhere") {
		t.Errorf("its /etc/hosts does not have the machine's and its alias:\n%s", got)
	}

	// Its port is the machine's, so another pod cannot have it.
	out, err := f.Podstead(f.Ctx(), "run", f.PodFile("second", server("c")+"ports = [{ containerPort = 8080, hostPort = 8080 }]\n"))
	if err == nil || !strings.Contains(err.Error(), "in use by pod \"machine\"") {
		t.Errorf("its port was not refused to another: %v\n%s", err, out)
	}
	other := f.start("other", server("c"))
	if got, want := f.inside(other.Status.PodIP, "/fetch", "url", "http://machine:8080/whoami"), name+" "+other.Status.PodIP; got != want {
		t.Errorf("a pod asked it by name: it answered %q, want %q", got, want)
	}
	f.hosts(machine4, "with its neighbour", func(names map[string][]string) bool { return len(names["other"]) == 2 })
}
