package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
)

// Host is where pods run.
type Host struct {
	StateDir string // on the file system of images, volumes and writable layers
	Cgroup   string // the parent of the cgroups of all pods
	// Reserved are the resources that pods cannot request.
	Reserved spec.ResourceList
}

// Allocatable returns what pods can request together, at present: the capacity of the host or, if they are lower, the limits of the cgroup
// that contains the pods and of its parents, without what is reserved. The limits of the daemon's cgroup do not matter, because pods are
// not below it. A resource whose amount cannot be determined is absent.
func (h Host) Allocatable() spec.ResourceList {
	list := spec.ResourceList{}
	bounds := cgroup.BoundsOf(h.Cgroup)
	cpu := int64(runtime.NumCPU()) * 1000
	if bounds.CPU > 0 {
		cpu = min(cpu, bounds.CPU)
	}
	h.set(list, spec.ResourceCPU, resource.NewMilliQuantity(cpu, resource.DecimalSI))
	var memory unix.Sysinfo_t
	if unix.Sysinfo(&memory) == nil {
		total := int64(memory.Totalram) * int64(memory.Unit) // no host has more
		for name, bytes := range hugePages(hugePagesDir) {
			h.set(list, name, resource.NewQuantity(bytes, resource.BinarySI))
			total -= bytes // nothing else can use it
		}
		if bounds.Memory > 0 {
			total = min(total, bounds.Memory)
		}
		h.set(list, spec.ResourceMemory, resource.NewQuantity(total, resource.BinarySI))
	}
	if fs, err := FileSystem(h.StateDir); err == nil {
		// no host has more
		h.set(list, spec.ResourceEphemeralStorage, resource.NewQuantity(disk.BlockBytes(&fs, fs.Blocks), resource.BinarySI))
	}
	return list
}

// hugePagesDir has a directory for each size of huge pages.
const hugePagesDir = "/sys/kernel/mm/hugepages"

// hugePages returns the bytes of the huge pages that the host has, by the name of the resource. Those of a size that cannot be read are
// absent.
func hugePages(dir string) map[string]int64 {
	entries, _ := os.ReadDir(dir) // a kernel without huge pages has no directory
	pages := map[string]int64{}
	for _, e := range entries {
		var kib, number int64
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "nr_hugepages"))
		if err == nil {
			_, err = fmt.Sscanf(e.Name()+" "+string(text), "hugepages-%dkB %d", &kib, &number)
		}
		if err == nil {
			pages[spec.HugePagesPrefix+resource.NewQuantity(kib<<10, resource.BinarySI).String()] = number * kib << 10
		}
	}
	return pages
}

// set adds a resource without what is reserved of it.
func (h Host) set(list spec.ResourceList, name string, q *resource.Quantity) {
	q.Sub(h.Reserved[name])
	if q.Sign() < 0 {
		q.Set(0)
	}
	list[name] = *q
}

// FileSystem returns the file system of a directory, which may not exist yet.
func FileSystem(dir string) (st unix.Statfs_t, err error) {
	for {
		err = unix.Statfs(dir, &st)
		parent := filepath.Dir(dir)
		if err == nil {
			return st, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return st, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
		dir = parent
	}
}
