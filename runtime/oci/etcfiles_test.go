package oci

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

func TestHostname(t *testing.T) {
	for _, test := range []struct{ name, hostname, want string }{
		{"pod", "", "pod"},
		{"pod", "host", "host"},
		{strings.Repeat("a", 62) + "-.b", "", strings.Repeat("a", 62)},
		{strings.Repeat("a", 70), "", strings.Repeat("a", 63)},
	} {
		if got := Hostname(&spec.Pod{Name: test.name, Hostname: test.hostname}); got != test.want {
			t.Errorf("Hostname of pod %q with hostname %q: got %q, want %q", test.name, test.hostname, got, test.want)
		}
	}
}

// TestHostnameInKernel tests the fields that choose the host name in the pod, and the error of a name that the kernel does not take.
func TestHostnameInKernel(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, test := range []struct {
		pod        spec.Pod
		want, fail string
	}{
		{spec.Pod{Name: "web", SetHostnameAsFQDN: true}, "web", ""},
		{spec.Pod{Name: "web", Subdomain: "shop"}, "web", ""},
		{spec.Pod{Name: "web", Subdomain: "shop", SetHostnameAsFQDN: true}, "web.shop.default.svc.cluster.local", ""},
		{spec.Pod{Name: "web", Hostname: "h", Subdomain: "shop", HostnameOverride: "a.example"}, "a.example", ""},
		{
			spec.Pod{Name: long, Subdomain: "shop", SetHostnameAsFQDN: true},
			long + ".shop.default.svc.cluster.local",
			"FQDN " + long + ".shop.default.svc.cluster.local is too long (64 characters is the max, 94 characters requested)",
		},
	} {
		err := CheckHostname(&test.pod)
		if got := Hostname(&test.pod); got != test.want || test.fail == "" && err != nil ||
			test.fail != "" && (err == nil || !strings.Contains(err.Error(), test.fail)) {
			t.Errorf("%+v: host name %q, error %v; want %q, %q", test.pod, got, err, test.want, test.fail)
		}
	}
	pod := &spec.Pod{Name: "web", Subdomain: "shop", HostnameOverride: "a.example"}
	const line = "10.1.0.2\ta.example\tweb.shop.default.svc.cluster.local\tweb\n"
	if hosts := Hosts(pod, []string{"10.1.0.2"}, ""); !strings.HasSuffix(hosts, line) {
		t.Errorf("/etc/hosts with hostnameOverride: want the line %q\n%s", line, hosts)
	}
}

func TestHosts(t *testing.T) {
	pod := &spec.Pod{Name: "web"}
	const local = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	if diff := cmp.Diff(local+"127.0.0.1\tweb\n", Hosts(pod, nil, "")); diff != "" {
		t.Errorf("without an address (-want +got):\n%s", diff)
	}
	pod.HostAliases = []spec.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a", "b"}}, {IP: "10.0.0.2", Hostnames: []string{"c"}}}
	const aliases = "\n# Entries added by HostAliases.\n10.0.0.1\ta\tb\n10.0.0.2\tc\n"
	if diff := cmp.Diff(local+"10.1.0.2\tweb\n"+aliases, Hosts(pod, []string{"10.1.0.2"}, "")); diff != "" {
		t.Errorf("with an address and aliases (-want +got):\n%s", diff)
	}
	const peers = "10.1.0.3\tdb\n"
	want := "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n" + aliases + "\n# Pods of this host.\n" + peers
	if diff := cmp.Diff(want, HostNetworkHosts(pod, "127.0.0.1 localhost\n", peers)); diff != "" {
		t.Errorf("in the host network (-want +got):\n%s", diff)
	}
	pod = &spec.Pod{
		Name: "web-0", Hostname: "h", Subdomain: "shop", Annotations: map[string]string{spec.AliasesAnnotation: "my_web, www"},
	}
	const names = "h.shop.default.svc.cluster.local\th\tmy_web\twww\n"
	want = local + "10.1.0.2\t" + names + "fd00::2\t" + names + "\n# Pods of this host.\n" + peers
	if diff := cmp.Diff(want, Hosts(pod, []string{"10.1.0.2", "fd00::2"}, peers)); diff != "" {
		t.Errorf("with a subdomain and peers (-want +got):\n%s", diff)
	}
}

func TestResolv(t *testing.T) {
	value := func(s string) *string { return &s }
	const host = "# comment\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nsearch old.org\nsearch example.org. corp\n" +
		"options ndots:2 rotate\nsortlist 1.2.3.4\n"
	for _, test := range []struct {
		name   string
		policy spec.DNSPolicy
		config *spec.DNSConfig
		want   string
	}{
		{
			"Default", spec.DNSDefault, nil,
			"search example.org corp\nnameserver 10.0.0.1\nnameserver 10.0.0.2\noptions ndots:2 rotate\n",
		},
		{
			"merged", spec.DNSDefault, &spec.DNSConfig{
				Nameservers: []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"}, Searches: []string{"corp", "more"},
				Options: []spec.DNSOption{{Name: "ndots", Value: value("5")}, {Name: "edns0"}},
			},
			"search example.org corp more\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\noptions ndots:5 rotate edns0\n",
		},
		{
			"the pod's alone", spec.DNSNone, &spec.DNSConfig{Nameservers: []string{"10.9.9.9"}},
			"nameserver 10.9.9.9\n",
		},
		{
			"too long a name is left out", spec.DNSNone,
			&spec.DNSConfig{Nameservers: []string{"10.9.9.9"}, Searches: []string{strings.Repeat("a", 256), "b"}},
			"search b\nnameserver 10.9.9.9\n",
		},
		{"nothing", spec.DNSNone, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Resolv(&spec.Pod{DNSPolicy: test.policy, DNSConfig: test.config}, host)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolvLimits(t *testing.T) {
	searches := func(n, length int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%0*d", length, i)
		}
		return list
	}
	for _, test := range []struct {
		name         string
		searches     []string
		wantSearches int
	}{
		{"at most 32", searches(40, 4), 32},
		{"at most 2048 characters with the spaces between", searches(32, 128), 15},
		{"exactly 2048 characters", append(searches(15, 128), strings.Repeat("a", 2048-15*129)), 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &spec.Pod{DNSPolicy: spec.DNSNone, DNSConfig: &spec.DNSConfig{Searches: test.searches}}
			line, _, _ := strings.Cut(Resolv(pod, ""), "\n")
			if n := len(strings.Fields(line)) - 1; n != test.wantSearches {
				t.Errorf("%d searches, want %d", n, test.wantSearches)
			}
		})
	}
}

// TestWithServer tests that the search domains and options of the host stay.
func TestWithServer(t *testing.T) {
	const text = "nameserver 127.0.0.53\nnameserver ::1\nsearch example.com\noptions edns0 trust-ad\n"
	if got, want := WithServer(text, "192.0.2.1"), "search example.com\nnameserver 192.0.2.1\noptions edns0 trust-ad\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyLoopbackDNS(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "nameserver 127.0.0.53\noptions edns0": true, "nameserver 127.0.0.1\nnameserver ::1": true,
		"nameserver 127.0.0.53\nnameserver 10.0.0.1": false, "nameserver fe80::1%eth0": false, "search x": false,
	} {
		if got := OnlyLoopbackDNS(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
