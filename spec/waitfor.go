package spec

import (
	"path"
	"slices"
	"strings"
)

// maxWaitFor is the maximum number of conditions in waitFor.
const maxWaitFor = 64

// The kinds of [WaitCondition].
const (
	WaitPod           = "pod"            // a pod of this host is ready or has succeeded
	WaitPath          = "path"           // a path exists
	WaitMount         = "mount"          // a path is a mount point
	WaitDNS           = "dns"            // a host name resolves
	WaitNetworkOnline = "network-online" // the host has a default route and an address
	WaitTimeSynced    = "time-synced"    // the clock of the host is synchronized
	WaitJob           = "job"            // the Job of the pod starts its next pod; it is in no file, see [Pod.Conditions]
)

// The states of a [WaitPod] condition.
const (
	WaitReady     = "ready"
	WaitSucceeded = "succeeded"
)

// Conditions returns what the pod waits for before it starts: the entries of [Pod.WaitFor], and its turn in its Job.
func (p *Pod) Conditions() []string {
	if p.Job == nil {
		return p.WaitFor
	}
	return append(slices.Clip(p.WaitFor), p.Job.Turn())
}

// WaitCondition is an entry of [Pod.Conditions].
type WaitCondition struct {
	Kind   string
	Object string // the pod, path, host name or Job; empty for [WaitNetworkOnline] and [WaitTimeSynced]
	State  string // of a pod; empty for the other kinds
}

// ParseWaitCondition splits an entry of [Pod.Conditions] into its parts. The entry must be valid.
func ParseWaitCondition(entry string) WaitCondition {
	var c WaitCondition
	c.Kind, c.Object, _ = strings.Cut(entry, ":")
	if c.Kind == WaitPod {
		c.Object, c.State, _ = strings.Cut(c.Object, ":")
	}
	return c
}

// String returns the kind and the object, for people: "pod db".
func (c WaitCondition) String() string {
	if c.Object == "" {
		return c.Kind
	}
	return c.Kind + " " + c.Object
}

// WaitsForPods returns the names of the pods in [Pod.WaitFor], in the order of the file.
func (p *Pod) WaitsForPods() []string {
	var names []string
	for _, entry := range p.WaitFor {
		if c := ParseWaitCondition(entry); c.Kind == WaitPod && !slices.Contains(names, c.Object) {
			names = append(names, c.Object)
		}
	}
	return names
}

func (v *validator) waitFor() {
	p := v.pod
	v.tooMany(&p.WaitFor, len(p.WaitFor), maxWaitFor)
	seen := unique{}
	for i := range p.WaitFor {
		entry := &p.WaitFor[i]
		if seen.seen(*entry) {
			v.duplicate(entry, *entry)
			continue
		}
		v.waitCondition(entry, ParseWaitCondition(*entry))
	}
}

func (v *validator) waitCondition(entry *string, c WaitCondition) {
	switch c.Kind {
	case WaitNetworkOnline, WaitTimeSynced:
		if *entry != c.Kind {
			v.invalid(entry, *entry, "must be "+quote(c.Kind)+" without an object")
		}
	case WaitPod:
		states := []string{WaitReady, WaitSucceeded}
		switch {
		case len(dnsSubdomain(c.Object)) > 0 || c.State == "":
			v.invalid(entry, *entry, `must be "pod:NAME:ready" or "pod:NAME:succeeded"`)
		case !slices.Contains(states, c.State):
			v.unsupportedValue(entry, c.State, states)
		case c.Object == v.pod.Name:
			v.invalid(entry, *entry, "must not be the pod itself")
		}
	case WaitPath, WaitMount:
		if !path.IsAbs(c.Object) {
			v.invalid(entry, *entry, `must be "`+c.Kind+`:" and an absolute path`)
		}
	case WaitDNS:
		if len(dnsSubdomain(c.Object)) > 0 {
			v.invalid(entry, *entry, `must be "dns:" and a host name`)
		}
	default:
		v.unsupportedValue(entry, c.Kind, []string{WaitPod, WaitPath, WaitMount, WaitDNS, WaitNetworkOnline, WaitTimeSynced})
	}
}
