package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/pkg/apparmor"
	"github.com/containerd/containerd/v2/pkg/cap"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// maxOpenFiles is how many files a process of a container may have open, which is what containers are used to.
const maxOpenFiles = 1 << 20

// Machine is what the machine and this process can do, as far as it decides what a container gets.
type Host struct {
	// Seccomp says that the kernel filters system calls.
	Seccomp bool
	// AppArmor says that the kernel has AppArmor, and the machine the program that loads its profiles.
	AppArmor bool
	// Capabilities are those of this process, such as CAP_CHOWN: no container can have others.
	Capabilities []string
	// UnifiedCgroups says that there is cgroup v2 and nothing else.
	UnifiedCgroups bool
	// Controllers are what cgroups can hold limits with.
	Controllers cgroup.Controllers
	// Memory is what the machine has, in bytes.
	Memory int64
	// HugePages are the sizes of huge pages that the kernel has, such as "2MB".
	HugePages []string
	// Resource says that this process has CAP_SYS_RESOURCE. Without it limits can only be lowered, and OOM scores only
	// raised.
	Resource bool
	// OpenFiles is the hard limit of this process for open files, and NrOpen the kernel's for any process.
	OpenFiles, NrOpen uint64
	// OOMScoreAdj is that of this process.
	OOMScoreAdj int
}

// DetectHost finds out what the machine and this process can do.
func DetectHost() (Host, error) {
	h := Host{Seccomp: hasSeccomp(), AppArmor: apparmor.HostSupports()}
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &st); err != nil {
		return h, fmt.Errorf("look at cgroups: %w", err)
	}
	h.UnifiedCgroups = st.Type == unix.CGROUP2_SUPER_MAGIC
	var err error
	if h.Controllers, err = cgroup.LookAtControllers(); err != nil {
		return h, err
	}
	if h.HugePages, err = hugePages("/sys/kernel/mm/hugepages"); err != nil {
		return h, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return h, fmt.Errorf("look at memory: %w", err)
	}
	h.Memory = int64(info.Totalram) * int64(info.Unit) //nolint:gosec // no machine has more
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return h, fmt.Errorf("look at the limit of open files: %w", err)
	}
	h.OpenFiles = limit.Max
	nr, err := readInt("/proc/sys/fs/nr_open")
	if err != nil {
		return h, err
	}
	h.NrOpen = uint64(max(nr, 0))
	if h.OOMScoreAdj, err = readInt("/proc/self/oom_score_adj"); err != nil {
		return h, err
	}
	if h.Capabilities, err = cap.Current(); err != nil {
		return h, fmt.Errorf("look at capabilities: %w", err)
	}
	h.Resource = slices.Contains(h.Capabilities, "CAP_SYS_RESOURCE")
	return h, nil
}

// hugePages lists the sizes of huge pages by the names of their folders, hugepages-2048kB for example, as cgroups name them.
func hugePages(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without
	}
	if err != nil {
		return nil, fmt.Errorf("look at huge pages: %w", err)
	}
	var sizes []string
	for _, e := range entries {
		var size uint64
		if _, err := fmt.Sscanf(e.Name(), "hugepages-%dkB", &size); err != nil {
			return nil, fmt.Errorf("look at huge pages: %s: %w", e.Name(), err)
		}
		unit := 0
		for ; size >= 1024 && size%1024 == 0 && unit < 2; unit++ {
			size /= 1024
		}
		sizes = append(sizes, fmt.Sprintf("%d%sB", size, []string{"K", "M", "G"}[unit]))
	}
	return sizes, nil
}

func readInt(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return n, nil
}

// hasSeccomp asks for a filter at an address that is none: a kernel that has filters looks there.
func hasSeccomp() bool {
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	return errors.Is(err, unix.EFAULT)
}

// openFiles is the limit of open files that a container gets.
func (h Host) openFiles() uint64 {
	limit := min(maxOpenFiles, h.NrOpen)
	if !h.Resource {
		limit = min(limit, h.OpenFiles)
	}
	return limit
}

// oomScore is the OOM score that a container gets where this one is wanted.
func (h Host) oomScore(want int) int {
	if !h.Resource {
		return max(want, h.OOMScoreAdj)
	}
	return want
}
