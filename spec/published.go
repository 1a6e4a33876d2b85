package spec

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ClusterDomain is the suffix of the full names of pods with a subdomain, with the default cluster domain of Kubernetes.
const ClusterDomain = ".default.svc.cluster.local"

// ShortName returns the host name of a pod without its domain: the field hostname or the name of the pod, truncated to a DNS label.
// hostnameOverride does not change it, because other pods know the pod by this name.
func (p *Pod) ShortName() string {
	name := cmp.Or(p.Hostname, p.Name)
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-.")
	}
	return name
}

// FullName returns the name of a pod in the domain of the cluster. Empty: the pod has no subdomain.
func (p *Pod) FullName() string {
	if p.Subdomain == "" {
		return ""
	}
	return p.ShortName() + "." + p.Subdomain + ClusterDomain
}

// elsewhere are the names without a dot that programs look up in clusters, clouds and networks. A program that finds a pod instead would
// send it what is meant for others, such as credentials.
var elsewhere = []string{
	"instance-data", "internal", "isatap", "kubernetes", "local", "localdomain", "metadata", "wpad",
}

// Unpublished returns why a name of a pod is not published in the hosts files of other pods; empty: it is. The names are those without a
// dot that the host has.
func Unpublished(name string, host []string) string {
	switch {
	case isReserved(name):
		return reservedName
	case strings.Contains(name, "."):
		return "it has a dot, so it may be the name of another host"
	case slices.Contains(elsewhere, name):
		return "it has a meaning in clusters or networks"
	case slices.ContainsFunc(host, func(own string) bool { return strings.EqualFold(name, own) }):
		return "it is the hostname of this host, or in its /etc/hosts"
	}
	return ""
}

// HiddenName is a name of a pod by which other pods do not reach it.
type HiddenName struct{ Pod, Name, Why string }

func (h HiddenName) String() string {
	return "other pods cannot reach the pod by the name " + quote(h.Name) + ": " + h.Why
}

// HiddenNames returns the names of pods by which other pods of a host with these names do not reach them.
func HiddenNames(pods []*Pod, host []string) []HiddenName {
	owners, first := map[string]bool{}, map[string]string{}
	for _, p := range pods {
		owners[p.Name] = true
		for _, name := range otherNames(p) {
			if name = strings.ToLower(name); first[name] == "" || p.Name < first[name] {
				first[name] = p.Name
			}
		}
	}
	var hidden []HiddenName
	for _, p := range pods {
		if why := Unpublished(p.Name, host); why != "" {
			hidden = append(hidden, HiddenName{p.Name, p.Name, why})
		}
		for _, name := range otherNames(p) {
			lower := strings.ToLower(name) // many resolvers ignore the case
			why := Unpublished(lower, host)
			switch {
			case why != "":
			case owners[lower]:
				why = "another pod is named so"
			case first[lower] != p.Name && name == p.Hostname:
				why = "pod " + quote(first[lower]) + " has the same hostname"
			case first[lower] != p.Name:
				why = "pod " + quote(first[lower]) + " has the same name"
			}
			if why != "" {
				hidden = append(hidden, HiddenName{p.Name, name, why})
			}
		}
	}
	return hidden
}

// otherNames returns the names without a dot that a pod has besides its own: its hostname, and its aliases.
func otherNames(p *Pod) []string {
	var names []string
	for _, name := range append([]string{p.Hostname}, p.Aliases()...) {
		if name != "" && name != p.Name && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// unpublished warns of names that other pods cannot use. A name that the pod has from its file has no place in it.
func (v *validator) unpublished() {
	for _, field := range []*string{&v.pod.Name, &v.pod.Hostname} {
		if why := Unpublished(*field, nil); *field != "" && why != "" && !isReserved(*field) {
			v.warn(field, "%s", HiddenName{Name: *field, Why: why})
		}
	}
}
