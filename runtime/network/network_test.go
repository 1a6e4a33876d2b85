package network

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"

	"github.com/podstead/podstead/spec"
)

var cmpIP = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

func TestOverlaps(t *testing.T) {
	port := func(ip string, number uint16, protocol spec.Protocol) Port {
		p := Port{HostPort: number, ContainerPort: 80, Protocol: protocol}
		if ip != "" {
			p.HostIP = netip.MustParseAddr(ip)
		}
		return p
	}
	for _, c := range []struct {
		a, b Port
		want bool
	}{
		{port("", 80, ""), port("", 80, spec.ProtocolTCP), true},
		{port("", 80, ""), port("", 81, ""), false},
		{port("", 80, ""), port("", 80, spec.ProtocolUDP), false},
		{port("", 80, ""), port("192.0.2.1", 80, ""), true},
		{port("", 80, ""), port("2001:db8::1", 80, ""), true},
		{port("0.0.0.0", 80, ""), port("192.0.2.1", 80, ""), true},
		{port("0.0.0.0", 80, ""), port("::", 80, ""), false},
		{port("::", 80, ""), port("2001:db8::1", 80, ""), true},
		{port("192.0.2.1", 80, ""), port("192.0.2.2", 80, ""), false},
		{port("192.0.2.1", 80, ""), port("192.0.2.1", 80, ""), true},
	} {
		if c.a.overlaps(c.b) != c.want || c.b.overlaps(c.a) != c.want {
			t.Errorf("%s and %s: overlap is not %v", c.a, c.b, c.want)
		}
	}
}

func TestRequestCheck(t *testing.T) {
	good := Port{HostPort: 80, ContainerPort: 80}
	for _, c := range []struct {
		r    Request
		want string // "" for none
	}{
		{Request{UID: "u", PodName: "p", Ports: []Port{good}}, ""},
		{Request{PodName: "p"}, "a pod needs a UID and a name"},
		{Request{UID: "u"}, "a pod needs a UID and a name"},
		{Request{UID: "u", PodName: "p", Ports: []Port{{ContainerPort: 80}}}, "host port 0/TCP to port 80 of the pod: no port is 0"},
		{Request{UID: "u", PodName: "p", Ports: []Port{{HostPort: 1, ContainerPort: 1, Protocol: "X"}}}, "host port 1/X: unknown protocol"},
		{
			Request{UID: "u", PodName: "p", Ports: []Port{{HostIP: netip.MustParseAddr("::ffff:192.0.2.1"), HostPort: 1, ContainerPort: 1}}},
			"host port [::ffff:192.0.2.1]:1/TCP: the address must be plain IPv4 or IPv6",
		},
		{Request{UID: "u", PodName: "p", Ports: []Port{good, good}}, `host port 80/TCP: pod "p" has it`},
	} {
		got := ""
		if err := c.r.check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

func TestAllocate(t *testing.T) {
	small := prefixes("10.0.0.0/29", "fd00::/64") // pods: .2 to .6
	last := func(entries ...string) []lastAddress {
		var all []lastAddress
		for _, e := range entries {
			pod, ip, _ := strings.Cut(e, "=")
			all = append(all, lastAddress{pod, netip.MustParseAddr(ip)})
		}
		return all
	}
	for _, c := range []struct {
		name  string
		taken string
		last  []lastAddress
		want  string // "" for an error
	}{
		{"the first", "", nil, "10.0.0.2 fd00::2"},
		{"the first that is free", "10.0.0.2 10.0.0.3", nil, "10.0.0.4 fd00::4"},
		{"its last one", "10.0.0.2", last("a=10.0.0.2", "web=10.0.0.5"), "10.0.0.5 fd00::5"},
		{"its last one is taken", "10.0.0.5", last("web=10.0.0.5"), "10.0.0.2 fd00::2"},
		{"its last one is of another subnet", "", last("web=192.0.2.7"), "10.0.0.2 fd00::2"},
		{"its last one is the machine's now", "", last("web=10.0.0.1"), "10.0.0.2 fd00::2"},
		{"its last one is of IPv6", "", last("web=fd00::2"), "10.0.0.2 fd00::2"},
		{"nobody's before somebody's last", "", last("a=10.0.0.2", "b=10.0.0.3"), "10.0.0.4 fd00::4"},
		{"the one that was used longest ago", "10.0.0.2 10.0.0.3 10.0.0.4", last("b=10.0.0.6", "a=10.0.0.5"), "10.0.0.6 fd00::6"},
		{"all are taken", "10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6", nil, ""},
	} {
		taken := func(a netip.Addr) bool { return strings.Contains(c.taken, a.String()) }
		got, err := allocate(small, "web", taken, c.last)
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %s, %v; want %s", c.name, text, err, c.want)
		}
	}
}

func TestRemember(t *testing.T) {
	var s stateFile
	ip := func(i int) netip.Addr { return at(netip.MustParsePrefix("10.0.0.0/16"), uint32(i)) }
	for i := range maxRemembered + 5 {
		if !s.remember(fmt.Sprint("pod", i), ip(i)) {
			t.Fatalf("pod %d is no news", i)
		}
	}
	if len(s.Addresses) != maxRemembered || s.Addresses[0].Pod != "pod5" {
		t.Errorf("%d are remembered, from %v on; want %d, from pod5 on", len(s.Addresses), s.Addresses[0], maxRemembered)
	}
	if s.remember("pod5", ip(5)) || s.Addresses[0].Pod != "pod6" || s.Addresses[maxRemembered-1].Pod != "pod5" {
		t.Error("a pod that is there again is not the last now, or is news")
	}
	if !s.remember("other", ip(5)) || len(s.Addresses) != maxRemembered {
		t.Error("an address is remembered for two")
	}
}

func TestChooseSubnets(t *testing.T) {
	for _, c := range []struct {
		used []netip.Prefix
		want string // "" for an error
	}{
		{nil, "10.77.64.0/22"},
		{prefixes("10.77.66.0/24", "10.78.64.1/32", "192.168.0.0/16"), "10.79.64.0/22"},
		{prefixes("10.0.0.0/8"), "172.16.212.0/22"},
		{prefixes("10.0.0.0/8", "172.16.0.0/12"), "192.168.212.0/22"},
		{prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"), ""},
	} {
		got, err := chooseSubnets(c.used, true)
		if c.want == "" {
			if err == nil {
				t.Errorf("%v: chose %v", c.used, got)
			}
			continue
		}
		if err != nil || got[0].String() != c.want || checkSubnets(got) != nil || !got[1].Addr().IsPrivate() {
			t.Errorf("%v: chose %v, %v; want %s and a unique local subnet", c.used, got, err, c.want)
		}
	}
	others := prefixes("172.17.0.0/16", "172.18.0.0/15", "172.20.0.0/14", "172.24.0.0/13", "192.168.0.0/20", "10.88.0.0/13", "10.96.0.0/11",
		"10.128.0.0/9", "10.85.0.0/16", "10.42.0.0/15", "10.22.0.0/16", "10.32.0.0/12", "10.0.0.0/13", "192.168.122.0/24", "100.64.0.0/10")
	for i, c := range candidates {
		if anyOverlap(c, others) || anyOverlap(c, candidates[:i]) || checkSubnets(candidates[i:i+1]) != nil {
			t.Errorf("the candidate %s cannot be one", c)
		}
	}
}

func TestCheckSubnets(t *testing.T) {
	for _, c := range []struct {
		subnets []netip.Prefix
		good    bool
	}{
		{nil, true},
		{prefixes("10.1.0.0/24"), true},
		{prefixes("10.1.0.0/24", "fd00::/64"), true},
		{prefixes("10.1.0.1/24"), false},
		{prefixes("10.1.0.0/30"), false},
		{prefixes("fd00::/64"), false},
		{prefixes("10.1.0.0/24", "10.2.0.0/24"), false},
		{prefixes("10.1.0.0/24", "fd00::/112"), false},
		{prefixes("10.1.0.0/24", "fd00::/64", "fd01::/64"), false},
		{[]netip.Prefix{{}}, false},
	} {
		if err := checkSubnets(c.subnets); (err == nil) != c.good {
			t.Errorf("%v: %v", c.subnets, err)
		}
	}
}

// options are those of a network that no test sets a pod up in.
func options(t *testing.T, told *bytes.Buffer) Options {
	dir := t.TempDir()
	return Options{
		StateFile: filepath.Join(dir, "state", "network.json"), LeaseFile: filepath.Join(dir, "run", "network.json"),
		BootID: "this boot", Bridge: "test0", Log: slog.New(slog.NewTextHandler(told, nil)),
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a daemon that was killed while it wrote has left is taken away, and what is another's is not.
func TestTemporaryFilesAreSwept(t *testing.T) {
	var told bytes.Buffer
	o := options(t, &told)
	others := filepath.Join(filepath.Dir(o.StateFile), ".podstead-tmp-other.json-1")
	write(t, others, "")
	for _, file := range []string{o.StateFile, o.LeaseFile} {
		write(t, filepath.Join(filepath.Dir(file), ".podstead-tmp-network.json-77"), "half")
	}
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	left, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(o.StateFile)), "*", ".podstead-tmp-*"))
	if err != nil || len(left) != 1 || left[0] != others {
		t.Errorf("left: %v, %v", left, err)
	}
}

const goodLeases = `{"version":1,"bootID":"this boot","subnets":["10.77.64.0/22"],"leases":{
	"u":{"pod":"web","ips":["10.77.64.2"],"link":"ps1","ports":[{"hostPort":80,"containerPort":80}]},
	"h":{"pod":"host","ports":[{"hostPort":22,"containerPort":22,"protocol":"TCP"}]}}}`

func TestLeaseFile(t *testing.T) {
	for _, c := range []struct {
		name, content string
		leases        int
		aside         bool
	}{
		{"good", goodLeases, 2, false},
		{"another boot's", strings.Replace(goodLeases, "this boot", "that", 1), 0, false},
		{"no JSON", "\x00\x00", 0, true},
		{"cut off", goodLeases[:100], 0, true},
		{"another version", strings.Replace(goodLeases, `"version":1`, `"version":2`, 1), 0, true},
		{"no leases", `{"version":1,"bootID":"this boot"}`, 0, true},
		{"outside of the subnets", strings.Replace(goodLeases, "10.77.64.2", "10.1.1.1", 1), 0, true},
		{"an address twice", strings.Replace(goodLeases, `{"pod":"host",`, `{"pod":"host","ips":["10.77.64.2"],"link":"ps2",`, 1), 0, true},
		{"no link", strings.Replace(goodLeases, `"link":"ps1",`, "", 1), 0, true},
		{"a bad port", strings.Replace(goodLeases, `"hostPort":80`, `"hostPort":0`, 1), 0, true},
		{"bad subnets", strings.Replace(goodLeases, "10.77.64.0/22", "10.77.64.0/31", 1), 0, true},
		{"null", strings.Replace(goodLeases, `"h":{`, `"n":null,"h":{`, 1), 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told bytes.Buffer
			o := options(t, &told)
			write(t, o.LeaseFile, c.content)
			n, err := New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if len(n.leases) != c.leases {
				t.Errorf("%d leases, want %d", len(n.leases), c.leases)
			}
			kept, err := os.ReadFile(o.LeaseFile + ".damaged")
			if (err == nil) != c.aside || c.aside && string(kept) != c.content || strings.Contains(told.String(), ".damaged") != c.aside {
				t.Errorf("set aside: %v; told: %s", err == nil, told.String())
			}
		})
	}
}

func TestStateFile(t *testing.T) {
	for _, c := range []struct {
		name, content string
		subnets       int
		aside, fails  bool
	}{
		{"good", `{"version":1,"subnets":["10.77.64.0/22"],"addresses":[{"pod":"web","ip":"10.77.64.5"}]}`, 1, false, false},
		{"cut off", `{"version":1,"subnets":["10.77.64.0/22"]`, 0, true, false},
		{"bad subnets", `{"version":1,"subnets":["10.77.64.1/22"]}`, 0, true, false},
		{"a later version's", `{"version":2,"subnets":["10.77.64.0/22"]}`, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told bytes.Buffer
			o := options(t, &told)
			write(t, o.StateFile, c.content)
			n, err := New(t.Context(), o)
			if c.fails {
				if !errors.Is(err, errLater) {
					t.Errorf("error %v, want one of a later version", err)
				}
				if kept, _ := os.ReadFile(o.StateFile); string(kept) != c.content {
					t.Errorf("the file has become %q", kept)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if _, err := os.Stat(o.StateFile + ".damaged"); len(n.state.Subnets) != c.subnets || (err == nil) != c.aside {
				t.Errorf("subnets %v, set aside: %v", n.state.Subnets, err == nil)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.BootID = "" },
		func(o *Options) { o.LeaseFile = "" },
		func(o *Options) { o.Bridge = "a-name-of-16-letters"[:16] },
		func(o *Options) { o.Bridge = "a b" },
		func(o *Options) { o.Subnets = prefixes("fd00::/64") },
		func(o *Options) { o.NetnsPath = filepath.Join(filepath.Dir(o.StateFile), "nowhere") },
		func(o *Options) { o.NetnsPath = os.Args[0] },
		func(o *Options) { o.StateFile = filepath.Join(os.Args[0], "state.json") },
	} {
		o := options(t, &bytes.Buffer{})
		change(&o)
		if n, err := New(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
			_ = n.Close()
		}
	}
}

func TestCheck(t *testing.T) {
	o := options(t, &bytes.Buffer{})
	write(t, o.LeaseFile, goodLeases)
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	listened := uint16(l.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		r      Request
		holder string
		pid    int
	}{
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: 80, ContainerPort: 1}}}, "web", 0},
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: 22, ContainerPort: 1}}}, "host", 0},
		{Request{UID: "u", PodName: "web", Ports: []Port{{HostPort: 80, ContainerPort: 80}}}, "", 0},
		{Request{UID: "x", PodName: "x", NetnsPath: "-", Ports: []Port{{HostPort: listened, ContainerPort: 1}}}, "", os.Getpid()},
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: listened, ContainerPort: 1}}}, "", 0},
	} {
		err := n.Check(c.r)
		conflict, ok := errors.AsType[*ConflictError](err)
		if wanted := c.holder != "" || c.pid != 0; ok != wanted {
			t.Errorf("%v: %v", c.r.Ports, err)
		} else if ok && (conflict.Holder != c.holder || conflict.PID != c.pid) {
			t.Errorf("%v: %+v, want holder %q, process %d", c.r.Ports, conflict, c.holder, c.pid)
		}
	}
}

func TestPeers(t *testing.T) {
	one, two := netip.MustParseAddr("10.77.64.2"), netip.MustParseAddr("fd00::2")
	n := &Network{subnets: prefixes("10.77.64.0/22"), leases: map[string]*lease{
		"1": {Pod: "web", Names: []string{"web", "front", "db", "localhost", ""}, IPs: []netip.Addr{one, two}, Link: "ps1"},
		"2": {Pod: "db", Names: []string{"data"}, IPs: []netip.Addr{netip.MustParseAddr("10.77.64.3")}, Link: "ps2"},
		"3": {Pod: "host"},
		"4": {Pod: "gone", Link: "ps4", Leaving: true},
		"5": {Pod: "soon", Link: "ps5", hidden: true},
	}}
	want := []Peer{
		{"2", "db", []netip.Addr{netip.MustParseAddr("10.77.64.3")}, []string{"db", "data"}},
		{"3", "host", []netip.Addr{netip.MustParseAddr("10.77.64.1")}, []string{"host"}},
		{"1", "web", []netip.Addr{one, two}, []string{"web", "front"}},
	}
	if diff := cmp.Diff(want, n.Peers(), cmpIP); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	lines := "10.77.64.1\thost\n10.77.64.2\tweb\tfront\nfd00::2\tweb\tfront\n"
	if got := Hosts(n.Peers(), "2"); got != lines {
		t.Errorf("the lines of db are\n%swant\n%s", got, lines)
	}
}

func TestAlias(t *testing.T) {
	ips := []netip.Addr{netip.MustParseAddr("10.77.64.2"), netip.MustParseAddr("fd00::2")}
	uid, got, ok := parseAlias(alias("test0", "u-1", ips), "test0")
	if !ok || uid != "u-1" || cmp.Diff(ips, got, cmpIP) != "" {
		t.Errorf("got %s, %v, %v", uid, got, ok)
	}
	for _, bad := range []string{"", "test0 u-1", "test1 u-1 10.77.64.2", "test0 u-1 x"} {
		if _, _, ok := parseAlias(bad, "test0"); ok {
			t.Errorf("%q was understood", bad)
		}
	}
}

func TestElement(t *testing.T) {
	for i, ip := range []string{"10.77.64.2", "fd00::2"} {
		want := Port{HostIP: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.IPv6Unspecified()}[i], HostPort: 0x1234, ContainerPort: 0x5678, Protocol: spec.ProtocolSCTP}
		got, at, ok := parseElement(families[i], element(families[i], want, netip.MustParseAddr(ip)))
		if diff := cmp.Diff(want, got, cmpIP); diff != "" || at.String() != ip || !ok {
			t.Errorf("to %s, %v (-want +got):\n%s", at, ok, diff)
		}
		if _, _, ok := parseElement(families[i], nftables.SetElement{Key: []byte{1}, Val: []byte{2}}); ok {
			t.Error("half an element was understood")
		}
	}
}

func TestJudgeLegacy(t *testing.T) {
	n := &Network{opts: Options{Bridge: "podstead0"}}
	for _, c := range []struct {
		rules string
		asked error
		bad   bool
	}{
		{"", nil, false},
		{"-P FORWARD ACCEPT\n", nil, false},
		{"-P FORWARD DROP\n", nil, true},
		{"-P FORWARD ACCEPT\n-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n", nil, true},
		{"-P FORWARD DROP\n-A FORWARD -i podstead0 -j ACCEPT\n", nil, false},
		{"-P FORWARD ACCEPT\n-A FORWARD -i eth0 -j ACCEPT\n", nil, false},
		{"", os.ErrNotExist, true},
	} {
		if got, bad := n.judgeLegacy("iptables-legacy", c.rules, c.asked); bad != c.bad || bad && (got.Problem == "" || !strings.Contains(got.Cure, "podstead0")) {
			t.Errorf("%q, %v: %v, %+v", c.rules, c.asked, bad, got)
		}
	}
}
