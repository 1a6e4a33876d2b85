package oci

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
)

// The limits of resolv.conf that the kubelet keeps: what is over them is left out.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchLength  = 255
	maxSearchesTotal = 2048
)

// Hostname is the name of a pod that has a host name of its own: the one that it asks for, else its name, cut to what a
// host name may be.
func Hostname(pod *spec.Pod) string {
	name := pod.Hostname
	if name == "" {
		name = pod.Name
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

// domain is what the names of pods with a subdomain end in, as in a cluster that was not told otherwise.
const domain = ".default.svc.cluster.local"

// Names are those by which a pod is known in its own network, the longest first: the full name of one with a subdomain, and
// its host name.
func Names(pod *spec.Pod) []string {
	names := []string{Hostname(pod)}
	if pod.Subdomain != "" {
		names = slices.Insert(names, 0, names[0]+"."+pod.Subdomain+domain)
	}
	return names
}

// Hosts is the /etc/hosts of a pod with a network of its own, with the lines that name its peers after the pod's own. Until
// it has an address, its own name is the loopback's.
func Hosts(pod *spec.Pod, ips []string, peers string) string {
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n")
	if len(ips) == 0 {
		ips = []string{"127.0.0.1"}
	}
	for _, ip := range ips {
		b.WriteString(ip + "\t" + strings.Join(Names(pod), "\t") + "\n")
	}
	return b.String() + aliases(pod) + others(peers)
}

// HostNetworkHosts is the /etc/hosts of a pod in the machine's network: the machine's file, the pod's aliases, its peers.
func HostNetworkHosts(pod *spec.Pod, machine, peers string) string {
	return "# Kubernetes-managed hosts file (host network).\n" + machine + aliases(pod) + others(peers)
}

// others are the peers, after what the pod itself says: of two lines for one name the first counts.
func others(peers string) string {
	if peers == "" {
		return ""
	}
	return "\n# Pods of this machine.\n" + peers
}

func aliases(pod *spec.Pod) string {
	if len(pod.HostAliases) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, a := range pod.HostAliases {
		b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
	}
	return b.String()
}

// Resolv is the /etc/resolv.conf of a pod, made of the machine's and of the pod's DNS configuration as its policy says.
func Resolv(pod *spec.Pod, machine string) string {
	var r resolv
	if pod.DNSPolicy != spec.DNSNone {
		r = parseResolv(machine)
	}
	if c := pod.DNSConfig; c != nil {
		r.servers = append(r.servers, c.Nameservers...)
		r.searches = append(r.searches, c.Searches...)
		for _, o := range c.Options {
			r.setOption(o.Name, o.Value)
		}
	}
	return r.String()
}

// OnlyLoopbackDNS reports whether every server of a resolv.conf is on a loopback, and there is one.
func OnlyLoopbackDNS(text string) bool {
	servers := parseResolv(text).servers
	for _, s := range servers {
		if ip, err := netip.ParseAddr(s); err != nil || !ip.IsLoopback() {
			return false
		}
	}
	return len(servers) > 0
}

// resolv is what a resolv.conf says.
type resolv struct{ servers, searches, options []string }

// parseResolv reads a resolv.conf as the resolver does: of several search lines the last one counts.
func parseResolv(text string) resolv {
	var r resolv
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "nameserver":
			r.servers = append(r.servers, words[1])
		case "search":
			r.searches = nil
			for _, s := range words[1:] {
				if s != "." {
					s = strings.TrimSuffix(s, ".")
				}
				r.searches = append(r.searches, s)
			}
		case "options":
			for _, o := range words[1:] {
				name, value, ok := strings.Cut(o, ":")
				if ok {
					r.setOption(name, &value)
				} else {
					r.setOption(name, nil)
				}
			}
		}
	}
	return r
}

func (r *resolv) setOption(name string, value *string) {
	option := name
	if value != nil && *value != "" {
		option += ":" + *value
	}
	same := func(o string) bool { n, _, _ := strings.Cut(o, ":"); return n == name }
	if i := slices.IndexFunc(r.options, same); i >= 0 {
		r.options[i] = option
		return
	}
	r.options = append(r.options, option)
}

// String is the file, without what is there twice or goes over a limit.
func (r resolv) String() string {
	var searches []string
	total := -1
	for _, s := range unique(r.searches) {
		if len(s) > maxSearchLength {
			continue
		}
		if total += len(s) + 1; len(searches) == maxSearches || total > maxSearchesTotal {
			break
		}
		searches = append(searches, s)
	}
	var b strings.Builder
	if len(searches) > 0 {
		b.WriteString("search " + strings.Join(searches, " ") + "\n")
	}
	servers := unique(r.servers)
	for _, s := range servers[:min(len(servers), maxNameservers)] {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(r.options) > 0 {
		b.WriteString("options " + strings.Join(r.options, " ") + "\n")
	}
	return b.String()
}

// unique returns the list without repetitions, in the order of first appearance.
func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
