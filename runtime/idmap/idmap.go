// Package idmap says which users and groups of the machine the users of a pod are that has a user namespace of its own
// (hostUsers of Kubernetes, KEP-127). It owns the file in which that is kept, and makes no namespace.
//
// Each such pod has [Size] ids for itself, from its first start until it is removed. What a volume holds belongs to the ids that
// the containers see, not to those of the machine: volumes are mounted id-mapped. So a range may go to another pod afterwards.
package idmap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/atomicfile"
)

// Size is how many users, and as many groups, a pod has: Kubernetes' idsPerPod.
const Size = 1 << 16

// fileVersion is that of the file.
const fileVersion = 1

// Range is the ids of a pod. The zero value is none: the pod has the machine's.
type Range struct {
	// First is the machine's id of the pod's root, the user and the group.
	First uint32
}

// Mappings are the range as the OCI runtime and the snapshotter take it, for users and for groups alike; nil for none.
func (r Range) Mappings() []specs.LinuxIDMapping {
	if r.First == 0 {
		return nil
	}
	return []specs.LinuxIDMapping{{ContainerID: 0, HostID: r.First, Size: Size}}
}

// Ranges are those of all pods. It is safe for concurrent use by one process; two must not use one file.
type Ranges struct {
	file           string
	subUID, subGID string

	mu     sync.Mutex
	loaded bool
	pods   map[string]uint32 // the first id, by UID
}

// file is what is kept.
type file struct {
	Version int               `json:"version"`
	Pods    map[string]uint32 `json:"pods"`
}

// New returns the ranges that are kept in a file, which need not be there; its folder is made. The files with subordinate ids, see
// subuid(5), are looked at when a range is given out. Every file is read only when it is needed: whoever has no such pod misses
// none.
func New(file, subUID, subGID string) *Ranges {
	return &Ranges{file: file, subUID: subUID, subGID: subGID}
}

// ErrUnreadable says that it cannot be read who has which range. No range is given out or taken back then.
var ErrUnreadable = errors.New("read user ids")

// Allocate gives a pod its range, the same at each call until [Ranges.Release]. It is on the disk when it returns.
func (r *Ranges) Allocate(uid string) (Range, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return Range{}, fmt.Errorf("allocate user ids: %w", err)
	}
	if first, ok := r.pods[uid]; ok {
		return Range{first}, nil
	}
	first, err := r.free()
	if err == nil {
		r.pods[uid] = first
		if err = r.save(); err != nil {
			delete(r.pods, uid)
		}
	}
	if err != nil {
		return Range{}, fmt.Errorf("allocate user ids: %w", err)
	}
	return Range{first}, nil
}

// Find returns the range of a pod. One that has none is an error.
func (r *Ranges) Find(uid string) (Range, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return Range{}, fmt.Errorf("find user ids: %w", err)
	}
	first, ok := r.pods[uid]
	if !ok {
		return Range{}, fmt.Errorf("find user ids: pod %s has none", uid)
	}
	return Range{first}, nil
}

// Release takes the range of a pod back, of which nothing may be left. It is no error if it has none, and an [ErrUnreadable] if
// that cannot be known.
func (r *Ranges) Release(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return fmt.Errorf("release user ids: %w", err)
	}
	first, ok := r.pods[uid]
	if !ok {
		return nil
	}
	delete(r.pods, uid)
	if err := r.save(); err != nil {
		r.pods[uid] = first
		return fmt.Errorf("release user ids: %w", err)
	}
	return nil
}

// free finds the lowest range that no pod has.
func (r *Ranges) free() (uint32, error) {
	allowed, err := pool(r.subUID, r.subGID)
	if err != nil {
		return 0, err
	}
	taken := make(map[uint32]bool, len(r.pods))
	for _, first := range r.pods {
		taken[first/Size], taken[(first+Size-1)/Size] = true, true // one that was given out from another pool may lie across two
	}
	n := 0
	for first := range allowed {
		n++
		if !taken[first/Size] && !taken[(first+Size-1)/Size] {
			return first, nil
		}
	}
	return 0, fmt.Errorf("all %d ranges that %s and %s leave to pods are taken", n, r.subUID, r.subGID)
}

// load reads the file, once. One of a later version is left as it is.
func (r *Ranges) load() error {
	if r.loaded {
		return nil
	}
	var f file
	text, err := os.ReadFile(r.file)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, r.file, err)
	case f.Version != fileVersion:
		return fmt.Errorf("%w: %s: its version is %d, not %d", ErrUnreadable, r.file, f.Version, fileVersion)
	}
	r.pods = maps.Clone(f.Pods)
	if r.pods == nil {
		r.pods = map[string]uint32{}
	}
	r.loaded = true
	return nil
}

func (r *Ranges) save() error {
	if len(r.pods) == 0 {
		return atomicfile.Remove(r.file)
	}
	text, err := json.Marshal(file{Version: fileVersion, Pods: r.pods})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(r.file, text, 0o600)
}
