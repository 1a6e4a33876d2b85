package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/internal/atomicfile"
)

// fileVersion is that of both files.
const fileVersion = 1

// maxRemembered bounds the pods whose last address is kept.
const maxRemembered = 1000

// leaseFile is what holds until the next boot.
type leaseFile struct {
	Version int               `json:"version"`
	BootID  string            `json:"bootID"`
	Subnets []netip.Prefix    `json:"subnets,omitempty"`
	Leases  map[string]*lease `json:"leases"` // by UID
}

// lease is what a pod has of the network. It is written before anything is made for it.
type lease struct {
	Pod   string       `json:"pod"`
	Names []string     `json:"names,omitempty"`
	IPs   []netip.Addr `json:"ips,omitempty"`  // none in the machine's network
	Link  string       `json:"link,omitempty"` // the machine's end of its veth pair
	Ports []Port       `json:"ports,omitempty"`
	// Leaving says that the pod is gone and only its link is not.
	Leaving bool `json:"leaving,omitempty"`

	hidden bool          // is being set up for the first time: no peer yet
	tried  chan struct{} // closed when the removal of its link has ended; not nil while Leaving
}

// stateFile is what lasts over boots.
type stateFile struct {
	Version int            `json:"version"`
	Subnets []netip.Prefix `json:"subnets,omitempty"`
	// Addresses are the last ones of pods by their names, the one used last at the end.
	Addresses []lastAddress `json:"addresses,omitempty"`
}

type lastAddress struct {
	Pod string     `json:"pod"`
	IP  netip.Addr `json:"ip"`
}

// remember makes ip the last address of the pod, and nobody else's. It reports whether that is news.
func (s *stateFile) remember(pod string, ip netip.Addr) bool {
	entry := lastAddress{Pod: pod, IP: ip}
	if i := slices.Index(s.Addresses, entry); i >= 0 {
		s.Addresses = append(slices.Delete(s.Addresses, i, i+1), entry)
		return false // its new place is written with the next news
	}
	s.Addresses = slices.DeleteFunc(s.Addresses, func(l lastAddress) bool { return l.Pod == pod || l.IP == ip })
	s.Addresses = append(s.Addresses, entry)
	s.Addresses = slices.Delete(s.Addresses, 0, max(0, len(s.Addresses)-maxRemembered))
	return true
}

// readJSON fills v from a file. A file that is not there leaves v as it is; one that cannot be understood is set aside,
// with ".damaged" after its name, and told.
func readJSON(ctx context.Context, log *slog.Logger, path string, v any, understood func() error) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read network state: %w", err)
	}
	if err = json.Unmarshal(raw, v); err == nil {
		err = understood()
	}
	if err == nil || errors.Is(err, errLater) {
		return err
	}
	aside := path + ".damaged"
	if renamed := os.Rename(path, aside); renamed != nil {
		return fmt.Errorf("read network state: %w (and it cannot be set aside: %w)", err, renamed)
	}
	log.WarnContext(ctx, "a file of the network's state cannot be read and was set aside",
		slog.String("file", aside), slog.Any("error", err))
	return nil
}

// errLater is the error of a file that a later version wrote. It is never written over.
var errLater = errors.New("it is of a later version of podstead")

func writeJSON(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write network state: %w", err)
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// loadState reads what lasts.
func loadState(ctx context.Context, log *slog.Logger, path string) (stateFile, error) {
	var s stateFile
	err := readJSON(ctx, log, path, &s, func() error {
		if s.Version > fileVersion {
			return fmt.Errorf("read %s: version %d: %w", path, s.Version, errLater)
		}
		return checkSubnets(s.Subnets)
	})
	if err != nil {
		return stateFile{}, err
	}
	if checkSubnets(s.Subnets) != nil { // set aside
		s = stateFile{}
	}
	s.Version = fileVersion
	return s, nil
}

// loadLeases reads the leases. ok is false if there are none of this boot that can be read.
func loadLeases(ctx context.Context, log *slog.Logger, path, bootID string) (f leaseFile, ok bool, err error) {
	whole := false
	err = readJSON(ctx, log, path, &f, func() error {
		if f.Version != fileVersion {
			return fmt.Errorf("version %d", f.Version)
		}
		if err := f.check(); err != nil {
			return err
		}
		whole = true
		return nil
	})
	if err != nil {
		return leaseFile{}, false, err
	}
	if !whole || f.BootID != bootID {
		return leaseFile{Version: fileVersion, BootID: bootID, Leases: map[string]*lease{}}, false, nil
	}
	return f, true, nil
}

// check finds what no lease file of ours says.
func (f *leaseFile) check() error {
	if f.Leases == nil {
		return errors.New("it has no leases")
	}
	if err := checkSubnets(f.Subnets); err != nil {
		return err
	}
	seen := map[netip.Addr]string{}
	for uid, l := range f.Leases {
		if l == nil || l.Pod == "" || (len(l.IPs) == 0) != (l.Link == "") {
			return fmt.Errorf("the lease of %s is not whole", uid)
		}
		for _, ip := range l.IPs {
			if other, twice := seen[ip]; twice {
				return fmt.Errorf("%s and %s have the same address %s", uid, other, ip)
			}
			if !slices.ContainsFunc(f.Subnets, func(s netip.Prefix) bool { return s.Contains(ip) }) {
				return fmt.Errorf("the address %s of %s is in no subnet", ip, uid)
			}
			seen[ip] = uid
		}
		for _, p := range l.Ports {
			if err := p.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareFolders makes the folders of the files, and takes away what a write left there that was killed.
func prepareFolders(files ...string) error {
	for _, file := range files {
		dir := filepath.Dir(file)
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // names of pods are no secret
			return fmt.Errorf("make folder of the network's state: %w", err)
		}
		if err := atomicfile.SweepOf(file); err != nil {
			return fmt.Errorf("tidy folder of the network's state: %w", err)
		}
	}
	return nil
}
