package network

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/podstead/podstead/internal/statefile"
)

// State is what persists across boots.
type State struct {
	Subnets []netip.Prefix `json:"subnets,omitempty"`
	// Addresses are the last addresses of pods by pod name, the most recently used last.
	Addresses []LastAddress `json:"addresses,omitempty"`
	// Unknown are the fields that a later version added.
	Unknown statefile.Unknown `json:"-"`
}

// LastAddress is the last IPv4 address of a pod.
type LastAddress struct {
	Pod string     `json:"pod"`
	IP  netip.Addr `json:"ip"`
}

// Remember records ip as the last address of the pod, and of no other pod. It reports whether an entry changed.
func (s *State) Remember(pod string, ip netip.Addr) bool {
	entry := LastAddress{Pod: pod, IP: ip}
	if i := slices.Index(s.Addresses, entry); i >= 0 {
		s.Addresses = append(slices.Delete(s.Addresses, i, i+1), entry)
		return false // the new position is saved with the next change
	}
	s.Addresses = slices.DeleteFunc(s.Addresses, func(l LastAddress) bool { return l.Pod == pod || l.IP == ip })
	s.Addresses = append(s.Addresses, entry)
	s.Addresses = slices.Delete(s.Addresses, 0, max(0, len(s.Addresses)-maxRemembered))
	return true
}

// LoadState reads the state. A missing file is an empty state.
func LoadState(ctx context.Context, log *slog.Logger, path string) (State, error) {
	var s State
	unknown, err := read(ctx, log, path, StateFormat, &s, func() error {
		return checkSubnets(s.Subnets)
	})
	if err != nil {
		return State{}, err
	}
	if checkSubnets(s.Subnets) != nil { // the file was renamed
		s = State{}
	}
	s.Unknown = unknown
	return s, nil
}

// maxRemembered bounds the number of remembered addresses.
const maxRemembered = 1000

// Write saves the state.
func (s *State) Write(path string) error { return StateFormat.Write(path, s, s.Unknown) }
