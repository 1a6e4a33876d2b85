package oci

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/spec"
)

// The kubelet's limits of resolv.conf. What exceeds them is omitted.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchLength  = 255
	maxSearchesTotal = 2048
)

// Hostname returns the host name of a pod with its own UTS namespace, as the kubelet's GetNodenameForKernel: hostnameOverride, the full
// name if setHostnameAsFQDN is set, or the short name. [CheckHostname] has whether it is possible.
func Hostname(pod *spec.Pod) string {
	name := pod.ShortName()
	if pod.SetHostnameAsFQDN {
		name = cmp.Or(pod.FullName(), name)
	}
	return cmp.Or(pod.HostnameOverride, name)
}

// CheckHostname returns the kubelet's error if the host name of a pod is longer than the kernel allows.
func CheckHostname(pod *spec.Pod) error {
	if name := Hostname(pod); !pod.HostNetwork && len(name) > spec.MaxHostname {
		return fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long "+
			"(%d characters is the max, %d characters requested)", name, spec.MaxHostname, len(name))
	}
	return nil
}

// Names returns the names of a pod in its network: the full name of a pod with a subdomain, its short name, and its aliases.
func Names(pod *spec.Pod) []string {
	names := []string{pod.ShortName()}
	if full := pod.FullName(); full != "" {
		names = slices.Insert(names, 0, full)
	}
	return append(names, pod.Aliases()...)
}

// ownNames returns the names of a pod in its own /etc/hosts. The canonical name is the first one. In a cluster, a pod with
// hostnameOverride finds its other names by DNS.
func ownNames(pod *spec.Pod) []string {
	if name := pod.HostnameOverride; name != "" {
		return slices.Insert(slices.DeleteFunc(Names(pod), func(other string) bool { return other == name }), 0, name)
	}
	return Names(pod)
}

// Hosts returns the /etc/hosts of a pod with its own network, followed by the lines of its peers. Before the pod has an address,
// its name resolves to the loopback address.
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
		b.WriteString(ip + "\t" + strings.Join(ownNames(pod), "\t") + "\n")
	}
	return b.String() + aliases(pod) + peerLines(peers)
}

// HostNetworkHosts returns the /etc/hosts of a pod in the host network: the host's file, the pod's aliases, its peers.
func HostNetworkHosts(pod *spec.Pod, host, peers string) string {
	return "# Kubernetes-managed hosts file (host network).\n" + host + aliases(pod) + peerLines(peers)
}

// peerLines returns the lines of the peers. They come after the pod's own lines, because the first line for a name wins.
func peerLines(peers string) string {
	if peers == "" {
		return ""
	}
	return "\n# Pods of this host.\n" + peers
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

// Resolv returns the /etc/resolv.conf of a pod, built from the host's file and the pod's dnsConfig according to its dnsPolicy.
func Resolv(pod *spec.Pod, host string) string {
	var r resolv
	if pod.DNSPolicy != spec.DNSNone {
		r = parseResolv(host)
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

// NameServers returns the name servers of a resolv.conf.
func NameServers(text string) []string { return parseResolv(text).servers }

// OnlyLoopbackDNS reports whether a resolv.conf has name servers and all of them are on loopback addresses.
func OnlyLoopbackDNS(text string) bool {
	servers := parseResolv(text).servers
	for _, s := range servers {
		if ip, err := netip.ParseAddr(s); err != nil || !ip.IsLoopback() {
			return false
		}
	}
	return len(servers) > 0
}

// WithServer returns a resolv.conf with one name server in place of all.
func WithServer(text, server string) string {
	r := parseResolv(text)
	r.servers = []string{server}
	return r.String()
}

// resolv is a parsed resolv.conf.
type resolv struct{ servers, searches, options []string }

// parseResolv parses a resolv.conf as the resolver does: the last of several search lines wins.
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
				name, value, _ := strings.Cut(o, ":")
				r.setOption(name, &value)
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

// String formats the file without duplicates and within the limits.
func (r resolv) String() string {
	var searches []string
	total := -1
	for _, s := range order.Unique(r.searches) {
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
	servers := order.Unique(r.servers)
	for _, s := range servers[:min(len(servers), maxNameservers)] {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(r.options) > 0 {
		b.WriteString("options " + strings.Join(r.options, " ") + "\n")
	}
	return b.String()
}
