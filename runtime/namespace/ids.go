package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/internal/statefile"
)

// IDRangeSize is the number of user IDs, and of group IDs, of a pod: idsPerPod of the kubelet.
const IDRangeSize = 1 << 16

// IDsFormat is that of the file with the ranges.
var IDsFormat = statefile.Format{Version: 1}

// IDRange is the range of user and group IDs of a pod with a user namespace (hostUsers = false, KEP-127, or keepID). The zero value means
// the IDs of the host.
//
// Each pod has [IDRangeSize] IDs from its first start until it is deleted. Volumes are mounted id-mapped, so their files are
// owned by the IDs inside the container. A range can therefore be reused by another pod.
type IDRange struct {
	// First is the host's user and group ID of the pod's root.
	First uint32
	// Kept is the ID in the containers of the user who runs a daemon without root, and Last the last ID that this user can map (keepID).
	// It excludes First. The pod's root has the ID that Kept has in other pods, all others are the same ones.
	Kept, Last uint32
}

// Own reports whether there is a user namespace.
func (r IDRange) Own() bool { return r.First != 0 || r.Kept != 0 }

// Swap translates an ID in a container to that of the daemon, or back. It changes an ID of a pod with Kept only.
func (r IDRange) Swap(id uint32) uint32 {
	switch id {
	case 0:
		return r.Kept
	case r.Kept:
		return 0
	}
	return id
}

// Extents returns the range as the kernel and the OCI runtime take it, for users and for groups; nil for the zero value. The kernel rejects
// an extent that spans several lines of the maps of this process: without root, these are the lines of subuid(5) and subgid(5).
func (r IDRange) Extents() (users, groups []specs.LinuxIDMapping) {
	all := r.Mappings()
	if r.Kept == 0 {
		return all, all
	}
	return cut(all, "/proc/self/uid_map"), cut(all, "/proc/self/gid_map")
}

// cut cuts mappings where a line of a map, such as uid_map, ends. Those of IDs that it does not have stay for the kernel to reject, as do
// all if the file, which was read at the start of the daemon, cannot be read.
func cut(list []specs.LinuxIDMapping, file string) []specs.LinuxIDMapping {
	text, _ := os.ReadFile(file)
	var extents []specs.LinuxIDMapping
	for _, m := range list {
		for m.Size > 0 {
			size := m.Size
			if end := proc.ExtentEnd(string(text), int64(m.HostID)); end > 0 {
				size = uint32(min(end-int64(m.HostID), int64(size)))
			}
			extents = append(extents, specs.LinuxIDMapping{ContainerID: m.ContainerID, HostID: m.HostID, Size: size})
			m.ContainerID, m.HostID, m.Size = m.ContainerID+size, m.HostID+size, m.Size-size
		}
	}
	return extents
}

// Mappings returns the range as the snapshotter takes it, both for users and groups; nil for the zero value.
func (r IDRange) Mappings() []specs.LinuxIDMapping {
	switch {
	case r.First != 0:
		return []specs.LinuxIDMapping{{ContainerID: 0, HostID: r.First, Size: IDRangeSize}}
	case r.Kept == 0:
		return nil
	}
	list := []specs.LinuxIDMapping{
		{ContainerID: 0, HostID: r.Kept, Size: 1},
		{ContainerID: 1, HostID: 1, Size: r.Kept - 1},
		{ContainerID: r.Kept, HostID: 0, Size: 1},
		{ContainerID: r.Kept + 1, HostID: r.Kept + 1, Size: r.Last - r.Kept},
	}
	return slices.DeleteFunc(list, func(m specs.LinuxIDMapping) bool { return m.Size == 0 })
}

// IDRanges are the ranges of all pods. It is safe for concurrent use by one process. Two processes must not use the same
// file.
type IDRanges struct {
	file           string
	subUID, subGID string

	mu     sync.Mutex
	loaded bool
	pods   map[string]uint32 // first ID by pod UID

	unknown statefile.Unknown // fields that a later version added
}

// idsFile is the content of the file.
type idsFile struct {
	Pods map[string]uint32 `json:"pods"`
}

// NewIDRanges returns the ranges saved in a file. The file may be missing, and its directory is created. The files with
// subordinate IDs, see subuid(5), are read when a range is allocated. No file is read before it is needed, so hosts
// without such pods do not need them.
func NewIDRanges(file, subUID, subGID string) *IDRanges {
	return &IDRanges{file: file, subUID: subUID, subGID: subGID}
}

// ErrUnreadableIDs means that the file cannot be read. No range is allocated or released then.
var ErrUnreadableIDs = errors.New("read user IDs")

// Allocate returns the range of a pod. It is the same until [IDRanges.Release]. It is saved on disk before Allocate
// returns.
func (r *IDRanges) Allocate(uid string) (IDRange, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return IDRange{}, fmt.Errorf("allocate user IDs: %w", err)
	}
	if first, ok := r.pods[uid]; ok {
		return IDRange{First: first}, nil
	}
	first, err := r.free()
	if err == nil {
		r.pods[uid] = first
		if err = r.save(); err != nil {
			delete(r.pods, uid)
		}
	}
	if err != nil {
		return IDRange{}, fmt.Errorf("allocate user IDs: %w", err)
	}
	return IDRange{First: first}, nil
}

// Find returns the range of a pod. It is an error if the pod has none.
func (r *IDRanges) Find(uid string) (IDRange, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return IDRange{}, fmt.Errorf("find user IDs: %w", err)
	}
	first, ok := r.pods[uid]
	if !ok {
		return IDRange{}, fmt.Errorf("find user IDs: pod %s has none", uid)
	}
	return IDRange{First: first}, nil
}

// Release releases the range of a pod, which must have no processes left. It is no error if the pod has none, and
// [ErrUnreadableIDs] if the file cannot be read.
func (r *IDRanges) Release(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return fmt.Errorf("release user IDs: %w", err)
	}
	first, ok := r.pods[uid]
	if !ok {
		return nil
	}
	delete(r.pods, uid)
	if err := r.save(); err != nil {
		r.pods[uid] = first
		return fmt.Errorf("release user IDs: %w", err)
	}
	return nil
}

// free returns the lowest free range.
func (r *IDRanges) free() (uint32, error) {
	allowed, err := idPool(r.subUID, r.subGID)
	if err != nil {
		return 0, err
	}
	taken := make(map[uint32]bool, len(r.pods))
	for _, first := range r.pods {
		// A range from an earlier configuration may overlap two.
		taken[first/IDRangeSize], taken[(first+IDRangeSize-1)/IDRangeSize] = true, true
	}
	n := 0
	for first := range allowed {
		n++
		if !taken[first/IDRangeSize] && !taken[(first+IDRangeSize-1)/IDRangeSize] {
			return first, nil
		}
	}
	return 0, fmt.Errorf("all %d ranges allowed by %s and %s are in use", n, r.subUID, r.subGID)
}

// load reads the file once. It does not change a file of a later version.
func (r *IDRanges) load() error {
	if r.loaded {
		return nil
	}
	var f idsFile
	unknown, err := IDsFormat.Read(r.file, &f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", ErrUnreadableIDs, r.file, err)
	}
	r.pods, r.unknown = maps.Clone(f.Pods), unknown
	if r.pods == nil {
		r.pods = map[string]uint32{}
	}
	r.loaded = true
	return nil
}

func (r *IDRanges) save() error {
	if len(r.pods) == 0 && r.unknown.IsZero() {
		return atomicfile.Remove(r.file)
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		return err
	}
	return IDsFormat.Write(r.file, idsFile{Pods: r.pods}, r.unknown)
}
