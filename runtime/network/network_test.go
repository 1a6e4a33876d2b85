package network

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/forwarder"
)

var compareAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

func TestRequestCheck(t *testing.T) {
	good := Port{HostPort: 80, ContainerPort: 80}
	for _, c := range []struct {
		r    Request
		want string // "" for none
	}{
		{Request{UID: "u", PodName: "p", Ports: []Port{good}}, ""},
		{Request{PodName: "p"}, "pod UID and name are required"},
		{Request{UID: "u"}, "pod UID and name are required"},
		{Request{UID: "u", PodName: "p", Ports: []Port{{ContainerPort: 80}}}, "host port 0/TCP to container port 80: must not be 0"},
		{
			Request{UID: "u", PodName: "p", Ports: []Port{{HostPort: 1, ContainerPort: 1, Protocol: "X"}}},
			"host port 1/X: protocol is not supported",
		},
		{
			Request{
				UID: "u", PodName: "p", Ports: []Port{{HostIP: netip.MustParseAddr("::ffff:192.0.2.1"), HostPort: 1, ContainerPort: 1}},
			},
			"host port [::ffff:192.0.2.1]:1/TCP: address must be an IPv4 or IPv6 address without zone",
		},
		{Request{UID: "u", PodName: "p", Ports: []Port{good, good}}, `host port 80/TCP: in use by pod "p"`},
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

// options returns options for a network without pods.
func options(t *testing.T, logs *bytes.Buffer) Options {
	dir := t.TempDir()
	return Options{
		StateFile: filepath.Join(dir, "state", "network.json"), LeaseFile: filepath.Join(dir, "run", "network.json"),
		BootID: "this boot", Bridge: "test0", Log: slog.New(slog.NewTextHandler(logs, nil)),
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

// TestReconcileForwards tests that the forwarder has the host ports of all pods after a reconciliation that could not list links.
func TestReconcileForwards(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	type request struct{ Owner string }
	requests := make(chan request, 10)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := json.NewDecoder(conn)
		if _, err := conn.Read(make([]byte, 1)); err != nil { // with the network namespace
			return
		}
		for r := (request{}); in.Decode(&r) == nil; r = (request{}) {
			requests <- r
			if _, err := io.WriteString(conn, "{}\n"); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	var logs bytes.Buffer
	o := options(t, &logs)
	o.Forwarder = forwarder.NewClient(t.Context(), socket, "/proc/self/ns/net", o.Log)
	n, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	port := forwarder.Forward{Port: forwarder.Port{Protocol: forwarder.TCP, Port: 8080}}
	if err := o.Forwarder.Set(t.Context(), "u", forwarder.Network{}, []forwarder.Forward{port}); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("the dump was interrupted")
	n.fault = func(string) error { return fault }
	if err := n.Reconcile(t.Context(), nil); !errors.Is(err, fault) {
		t.Errorf("%v, want %v", err, fault)
	}
	if err := errors.Join(l.Close(), n.Close()); err != nil {
		t.Fatal(err)
	}
	var owners []string
	for len(requests) > 0 {
		owners = append(owners, (<-requests).Owner)
	}
	if want := []string{"", "u", ""}; !slices.Equal(owners, want) { // those without an owner have the ports of all pods
		t.Errorf("requests for %q, want %q", owners, want)
	}
}

// Temporary files of interrupted writes are removed; those of other files are not.
func TestNewRemovesTemporaryFiles(t *testing.T) {
	var logs bytes.Buffer
	o := options(t, &logs)
	others := filepath.Join(filepath.Dir(o.StateFile), ".podstead-tmp-other.json-1")
	write(t, others, "")
	for _, file := range []string{o.StateFile, o.LeaseFile} {
		write(t, filepath.Join(filepath.Dir(file), ".podstead-tmp-network.json-77"), "partial")
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

const validLeases = `{"version":1,"bootID":"this boot","subnets":["10.77.64.0/22"],"leases":{
	"u":{"pod":"web","ips":["10.77.64.2"],"link":"ps1","ports":[{"hostPort":80,"containerPort":80}]},
	"h":{"pod":"host","ports":[{"hostPort":22,"containerPort":22,"protocol":"TCP"}]}}}`

func TestLeaseFile(t *testing.T) {
	for _, c := range []struct {
		name, content string
		leases        int
		renamed       bool
	}{
		{"valid", validLeases, 2, false},
		{"of another boot", strings.Replace(validLeases, "this boot", "that", 1), 0, false},
		{"not JSON", "\x00\x00", 0, true},
		{"truncated", validLeases[:100], 0, true},
		{"unsupported version", strings.Replace(validLeases, `"version":1`, `"version":2`, 1), 0, true},
		{"missing leases", `{"version":1,"bootID":"this boot"}`, 0, true},
		{"address outside of the subnets", strings.Replace(validLeases, "10.77.64.2", "10.1.1.1", 1), 0, true},
		{
			"duplicate address", strings.Replace(validLeases, `{"pod":"host",`, `{"pod":"host","ips":["10.77.64.2"],"link":"ps2",`, 1), 0,
			true,
		},
		{"missing link", strings.Replace(validLeases, `"link":"ps1",`, "", 1), 0, true},
		{"invalid port", strings.Replace(validLeases, `"hostPort":80`, `"hostPort":0`, 1), 0, true},
		{"invalid subnets", strings.Replace(validLeases, "10.77.64.0/22", "10.77.64.0/31", 1), 0, true},
		{"null lease", strings.Replace(validLeases, `"h":{`, `"n":null,"h":{`, 1), 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logs bytes.Buffer
			o := options(t, &logs)
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
			if (err == nil) != c.renamed || c.renamed && string(kept) != c.content ||
				strings.Contains(logs.String(), ".damaged") != c.renamed {
				t.Errorf("renamed: %v; logs: %s", err == nil, logs.String())
			}
		})
	}
}

func TestStateFile(t *testing.T) {
	for _, c := range []struct {
		name, content  string
		subnets        int
		renamed, fails bool
	}{
		{"valid", `{"version":1,"subnets":["10.77.64.0/22"],"addresses":[{"pod":"web","ip":"10.77.64.5"}]}`, 1, false, false},
		{"truncated", `{"version":1,"subnets":["10.77.64.0/22"]`, 0, true, false},
		{"invalid subnets", `{"version":1,"subnets":["10.77.64.1/22"]}`, 0, true, false},
		{"of a later version", `{"version":2,"subnets":["10.77.64.0/22"]}`, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logs bytes.Buffer
			o := options(t, &logs)
			write(t, o.StateFile, c.content)
			n, err := New(t.Context(), o)
			if c.fails {
				if !errors.Is(err, errNewerVersion) {
					t.Errorf("error %v, want ErrNewerVersion", err)
				}
				if kept, _ := os.ReadFile(o.StateFile); string(kept) != c.content {
					t.Errorf("file is now %q", kept)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if _, err := os.Stat(o.StateFile + ".damaged"); len(n.state.Subnets) != c.subnets || (err == nil) != c.renamed {
				t.Errorf("subnets %v, renamed: %v", n.state.Subnets, err == nil)
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
		func(o *Options) { o.NetnsPath = filepath.Join(filepath.Dir(o.StateFile), "missing") },
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
	write(t, o.LeaseFile, validLeases)
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
	listening := uint16(l.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		r      Request
		holder string
		pid    int
	}{
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: 80, ContainerPort: 1}}}, "web", 0},
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: 22, ContainerPort: 1}}}, "host", 0},
		{Request{UID: "u", PodName: "web", Ports: []Port{{HostPort: 80, ContainerPort: 80}}}, "", 0},
		{Request{UID: "x", PodName: "x", NetnsPath: "-", Ports: []Port{{HostPort: listening, ContainerPort: 1}}}, "", os.Getpid()},
		{Request{UID: "x", PodName: "x", Ports: []Port{{HostPort: listening, ContainerPort: 1}}}, "", 0},
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

// TestBoundByOthers: a process that listens on the host port of a pod is found, unless the pod is in the host network.
func TestBoundByOthers(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := Port{HostPort: uint16(l.Addr().(*net.TCPAddr).Port), ContainerPort: 80}
	for _, test := range []struct {
		name  string
		lease Lease
		want  bool
	}{
		{"all addresses", Lease{Pod: "web", Link: "ps1", Ports: []Port{port}}, true},
		{"host network", Lease{Pod: "web", Ports: []Port{port}}, false},
		{"leaving", Lease{Pod: "web", Link: "ps1", Leaving: true, Ports: []Port{port}}, false},
		{"no port", Lease{Pod: "web", Link: "ps1"}, false},
	} {
		n := &Network{leases: map[string]*attachment{"u": {Lease: test.lease}}}
		findings, err := n.boundByOthers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("(process %d) listens on host port %s of pod %q", os.Getpid(), port, "web")
		if found := len(findings) == 1 && strings.Contains(findings[0].Problem, want); found != test.want {
			t.Errorf("%s: %+v, want %v", test.name, findings, test.want)
		}
	}
}

func TestPeers(t *testing.T) {
	one, two := netip.MustParseAddr("10.77.64.2"), netip.MustParseAddr("fd00::2")
	names := []string{"web", "front", "db", "localhost", "my_db", "DB", "LocalHost", ""}
	n := &Network{subnets: prefixes("10.77.64.0/22"), leases: map[string]*attachment{
		"1": {Lease: Lease{Pod: "web", Names: names, IPs: []netip.Addr{one, two}, Link: "ps1"}},
		"2": {Lease: Lease{Pod: "db", Names: []string{"data"}, IPs: []netip.Addr{netip.MustParseAddr("10.77.64.3")}, Link: "ps2"}},
		"3": {Lease: Lease{Pod: "host"}},
		"4": {Lease: Lease{Pod: "leaving", Link: "ps4", Leaving: true}},
		"5": {Lease: Lease{Pod: "hidden", Link: "ps5"}, hidden: true},
	}}
	want := []Peer{
		{"2", "db", []netip.Addr{netip.MustParseAddr("10.77.64.3")}, []string{"db", "data"}},
		{"3", "host", []netip.Addr{netip.MustParseAddr("10.77.64.1")}, []string{"host"}},
		{"1", "web", []netip.Addr{one, two}, []string{"web", "front", "my_db"}},
	}
	if diff := cmp.Diff(want, n.peers(nil), compareAddr); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	lines := "10.77.64.1\thost\n10.77.64.2\tweb\tfront\tmy_db\nfd00::2\tweb\tfront\tmy_db\n"
	if got := Hosts(n.peers(nil), "2"); got != lines {
		t.Errorf("hosts of db:\n%swant:\n%s", got, lines)
	}
}

// TestUnpublishedPeers: no pod takes a name from other pods that has a meaning elsewhere, whatever its lease says.
func TestUnpublishedPeers(t *testing.T) {
	address := netip.MustParseAddr("10.77.64.2")
	lone := func(pod string, names ...string) *Network {
		return &Network{subnets: prefixes("10.77.64.0/22"), leases: map[string]*attachment{
			"1": {Lease: Lease{Pod: pod, Names: names, IPs: []netip.Addr{address}, Link: "ps1"}},
		}}
	}
	for _, test := range []struct {
		pod   string
		names []string
		want  string
	}{
		{"mirror.example.org", []string{"mirror.example.org"}, ""},
		{"host.docker.internal", nil, ""},
		{"kubernetes", []string{"kubernetes"}, ""},
		{"web", []string{"metadata"}, "10.77.64.2\tweb\n"},
		{"web", []string{"edge-7", "EDGE-7", "runsc"}, "10.77.64.2\tweb\n"},
		{"edge-7", nil, ""},
		{"runsc", []string{"runsc"}, ""},
		{"web", []string{"edge.com"}, "10.77.64.2\tweb\n"}, // of a lease of an earlier version: hostname edge, subdomain com
		{"web", []string{"edge.shop.default.svc.cluster.local", "edge"}, "10.77.64.2\tweb\tedge.shop.default.svc.cluster.local\tedge\n"},
		{"kubernetes.default.svc.cluster.local", []string{"kubernetes.default.svc.cluster.local"}, ""},
	} {
		if got := Hosts(lone(test.pod, test.names...).peers([]string{"edge-7", "runsc"}), "2"); got != test.want {
			t.Errorf("pod %s with names %v: %q, want %q", test.pod, test.names, got, test.want)
		}
	}
}

func TestAlias(t *testing.T) {
	ips := []netip.Addr{netip.MustParseAddr("10.77.64.2"), netip.MustParseAddr("fd00::2")}
	uid, got, ok := parseAlias(alias("test0", "u-1", ips), "test0")
	if !ok || uid != "u-1" || cmp.Diff(ips, got, compareAddr) != "" {
		t.Errorf("got %s, %v, %v", uid, got, ok)
	}
	for _, bad := range []string{"", "test0 u-1", "test1 u-1 10.77.64.2", "test0 u-1 x"} {
		if _, _, ok := parseAlias(bad, "test0"); ok {
			t.Errorf("%q was accepted", bad)
		}
	}
}
