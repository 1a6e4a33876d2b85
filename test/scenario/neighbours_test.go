//go:build e2e

package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// addresses returns the addresses of a pod, which must have one of each family.
func (f *fixture) addresses(p *api.Pod) (ip4, ip6 string) {
	f.Helper()
	if len(p.Status.PodIPs) != 2 {
		f.Fatalf("addresses of pod %s: %v, want one of each family", p.Metadata.Name, p.Status.PodIPs)
	}
	ip4, ip6 = p.Status.PodIPs[0].IP, p.Status.PodIPs[1].IP
	if !netip.MustParseAddr(ip4).Is4() || !netip.MustParseAddr(ip6).Is6() || p.Status.PodIP != ip4 {
		f.Fatalf("addresses of pod %s: %v, podIP %s, want IPv4 first", p.Metadata.Name, p.Status.PodIPs, p.Status.PodIP)
	}
	return ip4, ip6
}

// hosts waits until the /etc/hosts of a test server satisfies a condition.
func (f *fixture) hosts(ip, what string, ok func(names map[string][]string) bool) {
	f.Helper()
	f.Await(func() error {
		text, err := space("").get(f.Ctx(), page(ip, "/file", "path", "/etc/hosts"))
		names := map[string][]string{}
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 1 && !strings.HasPrefix(line, "#") {
				for _, name := range words[1:] {
					names[name] = append(names[name], words[0])
				}
			}
		}
		if err == nil && !ok(names) {
			err = fmt.Errorf("/etc/hosts is not %s:\n%s", what, text)
		}
		return err
	})
}

// TestNeighbours: pods reach each other by name, over both address families, for as long as they exist.
func TestNeighbours(t *testing.T) {
	f := newFixture(t)
	alpha := f.start("alpha", "hostAliases = [{ ip = \"192.0.2.7\", hostnames = [\"gamma\", \"elsewhere\"] }]\n"+server("c"))
	alpha4, alpha6 := f.addresses(&alpha)
	f.hosts(alpha4, "without neighbours", func(names map[string][]string) bool {
		return names["beta"] == nil && slices.Equal(names["alpha"], []string{alpha4, alpha6}) &&
			slices.Equal(names["elsewhere"], []string{"192.0.2.7"})
	})
	file := f.hostsFile(alpha.Metadata.UID)

	beta := f.start("beta", "hostname = \"shop-0\"\nsubdomain = \"shop\"\n"+server("c"))
	beta4, beta6 := f.addresses(&beta)
	both := []string{beta4, beta6}
	for _, name := range []string{"beta", "shop-0", "shop-0.shop.default.svc.cluster.local"} {
		f.hosts(alpha4, "with "+name, func(names map[string][]string) bool { return slices.Equal(names[name], both) })
		for network, from := range map[string]string{"tcp4": alpha4, "tcp6": alpha6} {
			if got, want := f.inside(alpha4, "/fetch", "network", network, "url",
				"http://"+name+":8080/whoami"), "shop-0 "+from; got != want {
				t.Errorf("from alpha, %s over %s answered %q, want %q", name, network, got, want)
			}
		}
		if got, want := f.inside(alpha4, "/datagram", "to", name+":8080"), "shop-0 "; !strings.HasPrefix(got, want) {
			t.Errorf("from alpha, %s over UDP answered %q, want %q", name, got, want)
		}
	}
	if got, want := f.inside(beta4, "/fetch", "url", "http://alpha:8080/whoami"), "alpha "; !strings.HasPrefix(got, want) {
		t.Errorf("from beta, alpha answered %q, want %q", got, want)
	}
	f.hosts(beta4, "with its full name first", func(names map[string][]string) bool {
		return slices.Equal(names["shop-0.shop.default.svc.cluster.local"], both) && slices.Equal(names["shop-0"], both)
	})

	gamma := f.start("gamma", shell("c", "echo up"+idle))
	gamma4, gamma6 := f.addresses(&gamma)
	f.hosts(alpha4, "with its own alias before gamma", func(names map[string][]string) bool {
		return slices.Equal(names["gamma"], []string{"192.0.2.7", gamma4, gamma6})
	})
	f.hosts(beta4, "with gamma", func(names map[string][]string) bool { return slices.Equal(names["gamma"], []string{gamma4, gamma6}) })

	f.MustRun("delete", "beta", "gamma", "--grace-period", "1")
	f.hosts(alpha4, "without deleted pods", func(names map[string][]string) bool {
		return names["beta"] == nil && names["shop-0"] == nil && slices.Equal(names["gamma"], []string{"192.0.2.7"})
	})
	if now := f.hostsFile(alpha.Metadata.UID); now != file {
		t.Errorf("inode of alpha's /etc/hosts was %d, is %d", file, now)
	}
	if c := f.running("alpha").Status.ContainerStatuses[0]; c.RestartCount != 0 {
		t.Errorf("alpha was restarted: %+v", c)
	}
}

// hostsFile returns the inode of /etc/hosts in a running container of a pod.
func (f *fixture) hostsFile(uid string) (inode uint64) {
	f.Helper()
	processes, err := f.Processes()
	f.Check(err)
	err = errors.New("the pod has no test server process")
	for _, p := range processes {
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
		if !strings.Contains(string(groups), uid) || !strings.HasPrefix(p.Command, "/bin/testserver") {
			continue
		}
		var stat unix.Stat_t
		err = unix.Stat(filepath.Join("/proc", fmt.Sprint(p.PID), "root/etc/hosts"), &stat)
		inode = stat.Ino
	}
	f.Check(err)
	return inode
}
