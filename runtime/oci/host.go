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
type Machine struct {
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

// LookAtMachine finds out what the machine and this process can do.
func LookAtMachine() (Machine, error) {
	m := Machine{Seccomp: hasSeccomp(), AppArmor: apparmor.HostSupports()}
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &st); err != nil {
		return m, fmt.Errorf("look at cgroups: %w", err)
	}
	m.UnifiedCgroups = st.Type == unix.CGROUP2_SUPER_MAGIC
	var err error
	if m.Controllers, err = cgroup.LookAtControllers(); err != nil {
		return m, err
	}
	if m.HugePages, err = hugePages("/sys/kernel/mm/hugepages"); err != nil {
		return m, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("look at memory: %w", err)
	}
	m.Memory = int64(info.Totalram) * int64(info.Unit) //nolint:gosec // no machine has more
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return m, fmt.Errorf("look at the limit of open files: %w", err)
	}
	m.OpenFiles = limit.Max
	nr, err := readInt("/proc/sys/fs/nr_open")
	if err != nil {
		return m, err
	}
	m.NrOpen = uint64(max(nr, 0))
	if m.OOMScoreAdj, err = readInt("/proc/self/oom_score_adj"); err != nil {
		return m, err
	}
	if m.Capabilities, err = cap.Current(); err != nil {
		return m, fmt.Errorf("look at capabilities: %w", err)
	}
	m.Resource = slices.Contains(m.Capabilities, "CAP_SYS_RESOURCE")
	return m, nil
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
func (m Machine) openFiles() uint64 {
	limit := min(maxOpenFiles, m.NrOpen)
	if !m.Resource {
		limit = min(limit, m.OpenFiles)
	}
	return limit
}

// oomScore is the OOM score that a container gets where this one is wanted.
func (m Machine) oomScore(want int) int {
	if !m.Resource {
		return max(want, m.OOMScoreAdj)
	}
	return want
}
