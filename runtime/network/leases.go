package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/statefile"
)

// The formats of this package.
var (
	// LeaseFormat is that of the lease file.
	LeaseFormat = statefile.Format{Version: 1, Loss: statefile.Volatile, Aside: ".damaged"}
	// StateFormat is that of the persistent state.
	StateFormat = statefile.Format{Version: 1, Aside: ".damaged"}
)

// LeaseFile is the lease file. It is valid until the next boot.
type LeaseFile struct {
	BootID  string            `json:"bootID"`
	Subnets []netip.Prefix    `json:"subnets,omitempty"`
	Leases  map[string]*Lease `json:"leases"` // by pod UID
	// Unknown are the fields that a later version added.
	Unknown statefile.Unknown `json:"-"`
}

// Lease is what a pod has of the network. It is saved before anything is created for it.
type Lease struct {
	Pod   string       `json:"pod"`
	Names []string     `json:"names,omitempty"`
	IPs   []netip.Addr `json:"ips,omitempty"`  // none with hostNetwork
	Link  string       `json:"link,omitempty"` // the host's end of the veth pair
	Ports []Port       `json:"ports,omitempty"`
	// Leaving means that the pod was torn down and only its link is left.
	Leaving bool `json:"leaving,omitempty"`
}

// read reads a file into v and returns the fields that a later version added. A missing file leaves v unchanged. A file that cannot be
// parsed or fails validate is set aside, and a warning is logged. A file that only a later version understands is an [errNewerVersion].
func read(ctx context.Context, log *slog.Logger, path string, f statefile.Format, v any, validate func() error) (statefile.Unknown, error) {
	unknown, err := f.Read(path, v)
	if _, io := errors.AsType[*fs.PathError](err); io {
		if errors.Is(err, fs.ErrNotExist) {
			return statefile.Unknown{}, nil
		}
		return statefile.Unknown{}, fmt.Errorf("read network state: %w", err)
	}
	if err == nil {
		err = validate()
	}
	switch {
	case err == nil:
		return unknown, nil
	case errors.Is(err, errNewerVersion):
		return statefile.Unknown{}, fmt.Errorf("read %s: %w", path, err)
	}
	return statefile.Unknown{}, setAside(ctx, log, path, f, err)
}

// setAside renames a file that cannot be used.
func setAside(ctx context.Context, log *slog.Logger, path string, f statefile.Format, err error) error {
	damaged, renameErr := f.SetAside(path)
	if renameErr != nil {
		return fmt.Errorf("read network state: %w; rename damaged file: %w", err, renameErr)
	}
	log.WarnContext(ctx, "damaged network state file was renamed",
		slog.String("file", damaged), slog.Any("error", err))
	return nil
}

// errNewerVersion is returned for a file that a later version wrote. Such a file is never overwritten.
var errNewerVersion = statefile.ErrNewer

// LoadLeases reads the leases. ok is false if there are no readable leases of this boot. A file that only a later version understands is
// renamed like a damaged one, because the leases can be read from the kernel.
func LoadLeases(ctx context.Context, log *slog.Logger, path, bootID string) (f LeaseFile, ok bool, err error) {
	valid := false
	unknown, err := read(ctx, log, path, LeaseFormat, &f, func() error {
		if err := f.check(); err != nil {
			return err
		}
		valid = true
		return nil
	})
	if errors.Is(err, errNewerVersion) {
		err = setAside(ctx, log, path, LeaseFormat, err)
	}
	if err != nil {
		return LeaseFile{}, false, err
	}
	if !valid || f.BootID != bootID {
		return LeaseFile{BootID: bootID, Leases: map[string]*Lease{}}, false, nil
	}
	f.Unknown = unknown
	return f, true, nil
}

// check validates the file.
func (f *LeaseFile) check() error {
	if f.Leases == nil {
		return errors.New("leases are missing")
	}
	if err := checkSubnets(f.Subnets); err != nil {
		return err
	}
	seen := map[netip.Addr]string{}
	for uid, l := range f.Leases {
		if l == nil || l.Pod == "" || (len(l.IPs) == 0) != (l.Link == "") {
			return fmt.Errorf("lease of pod %s: incomplete", uid)
		}
		for _, ip := range l.IPs {
			if other, twice := seen[ip]; twice {
				return fmt.Errorf("lease of pod %s: address %s is also leased to pod %s", uid, ip, other)
			}
			if !slices.ContainsFunc(f.Subnets, func(s netip.Prefix) bool { return s.Contains(ip) }) {
				return fmt.Errorf("lease of pod %s: address %s is in no subnet", uid, ip)
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

// prepareDirs creates the directories of the files and removes temporary files of interrupted writes.
func prepareDirs(files ...string) error {
	for _, file := range files {
		dir := filepath.Dir(file)
		if err := os.MkdirAll(dir, 0o755); err != nil { // names of pods are no secret
			return fmt.Errorf("create directory of network state: %w", err)
		}
		if err := atomicfile.SweepOf(file); err != nil {
			return fmt.Errorf("clean up directory of network state: %w", err)
		}
	}
	return nil
}

// Write saves the leases of this boot.
func (f LeaseFile) Write(path string) error { return LeaseFormat.Write(path, f, f.Unknown) }
