package lease

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
	"github.com/podstead/podstead/runtime/network/hostport"
	"github.com/podstead/podstead/runtime/network/subnet"
)

// fileVersion is that of both files.
const fileVersion = 1

// File is what holds until the next boot.
type File struct {
	Version int               `json:"version"`
	BootID  string            `json:"bootID"`
	Subnets []netip.Prefix    `json:"subnets,omitempty"`
	Leases  map[string]*Lease `json:"leases"` // by UID
}

// lease is what a pod has of the network. It is written before anything is made for it.
type Lease struct {
	Pod   string          `json:"pod"`
	Names []string        `json:"names,omitempty"`
	IPs   []netip.Addr    `json:"ips,omitempty"`  // none in the machine's network
	Link  string          `json:"link,omitempty"` // the machine's end of its veth pair
	Ports []hostport.Port `json:"ports,omitempty"`
	// Leaving says that the pod is gone and only its link is not.
	Leaving bool `json:"leaving,omitempty"`
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
	if err == nil || errors.Is(err, ErrNewerVersion) {
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

// ErrNewerVersion is the error of a file that a later version wrote. It is never written over.
var ErrNewerVersion = errors.New("it is of a later version of podstead")

func write(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write network state: %w", err)
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// Load reads the leases. ok is false if there are none of this boot that can be read.
func Load(ctx context.Context, log *slog.Logger, path, bootID string) (f File, ok bool, err error) {
	valid := false
	err = readJSON(ctx, log, path, &f, func() error {
		if f.Version != fileVersion {
			return fmt.Errorf("version %d", f.Version)
		}
		if err := f.check(); err != nil {
			return err
		}
		valid = true
		return nil
	})
	if err != nil {
		return File{}, false, err
	}
	if !valid || f.BootID != bootID {
		return File{Version: fileVersion, BootID: bootID, Leases: map[string]*Lease{}}, false, nil
	}
	return f, true, nil
}

// check finds what no lease file of ours says.
func (f *File) check() error {
	if f.Leases == nil {
		return errors.New("it has no leases")
	}
	if err := subnet.Check(f.Subnets); err != nil {
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
			if err := p.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrepareDirs makes the folders of the files, and takes away what a write left there that was killed.
func PrepareDirs(files ...string) error {
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

// Write saves the leases of this boot.
func (f File) Write(path string) error {
	f.Version = fileVersion
	return write(path, f)
}
