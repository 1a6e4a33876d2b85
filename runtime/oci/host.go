package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/pkg/apparmor"
	"github.com/containerd/containerd/v2/pkg/cap"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/cgroup"
)

// Host describes the features of the host and of this process that affect the specification of containers.
type Host struct {
	// Seccomp is true if the kernel supports seccomp filters.
	Seccomp bool
	// Unsupported are architectures whose programs the kernel does not run.
	Unsupported []specs.Arch
	// AppArmor is true if the kernel supports AppArmor and the host has the program that loads profiles.
	AppArmor bool
	// Capabilities are those of this process, such as CAP_CHOWN. Containers cannot have others.
	Capabilities []string
	// UnifiedCgroups is true if the host has only cgroup v2.
	UnifiedCgroups bool
	// Controllers are the available cgroup controllers.
	Controllers cgroup.Controllers
	// Memory is the size of the host's memory in bytes.
	Memory int64
	// HugePages are the sizes of huge pages that the kernel supports, such as "2MB".
	HugePages []string
	// Resource is true if this process has CAP_SYS_RESOURCE. Without it limits can only be lowered and OOM scores only raised.
	Resource bool
	// HardLimits are the hard limits of this process, by the names of [spec.UlimitNames]. NrOpen is the maximum of the kernel for nofile.
	HardLimits map[string]uint64
	NrOpen     uint64
	// OOMScoreAdj is the OOM score adjustment of this process.
	OOMScoreAdj int
	// Rootless is true if this process is root in the user namespace of an ordinary user only, see [Host.WithoutRoot].
	Rootless bool
	// NoCgroups is why pods have no cgroups if Rootless is true; empty: they have.
	NoCgroups string
	// LastID is the last user and group ID that containers can have if Rootless is true.
	LastID int64
}

// WithoutRoot returns the features for a process that is root in the user namespace of an ordinary user: its CAP_SYS_RESOURCE has no effect
// on limits and OOM scores, and it cannot load AppArmor profiles. Controllers are the cgroup controllers that are delegated to the user. If
// there is no cgroup for pods, noCgroups is the reason.
func (h Host) WithoutRoot(controllers []string, noCgroups string) (Host, error) {
	h.Rootless, h.Resource, h.AppArmor = true, false, false
	h.Controllers.Names, h.NoCgroups = controllers, noCgroups
	if noCgroups != "" {
		h.Controllers.Mounts = nil
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return h, fmt.Errorf("read IDs of the user namespace: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/gid_map")
	if err != nil {
		return h, fmt.Errorf("read IDs of the user namespace: %w", err)
	}
	h.LastID = min(proc.LastMapped(string(users)), proc.LastMapped(string(groups)))
	return h, nil
}

// WithoutCgroups returns the features for a pod that was started without cgroups, such as by an earlier version of a daemon without root.
func (h Host) WithoutCgroups() Host {
	h.Controllers.Names = nil
	if h.NoCgroups == "" {
		h.NoCgroups = "this pod was started without one, delete it and apply it again"
	}
	return h
}

// DetectHost detects the features of the host and of this process.
func DetectHost(ctx context.Context) (Host, error) {
	h := Host{Seccomp: hasSeccomp(), AppArmor: apparmor.HostSupports(), Unsupported: unsupported(ctx)}
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &st); err != nil {
		return h, fmt.Errorf("detect cgroups: %w", err)
	}
	h.UnifiedCgroups = st.Type == unix.CGROUP2_SUPER_MAGIC
	var err error
	if h.Controllers, err = cgroup.DetectControllers(); err != nil {
		return h, err
	}
	if h.HugePages, err = hugePages("/sys/kernel/mm/hugepages"); err != nil {
		return h, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return h, fmt.Errorf("detect memory: %w", err)
	}
	h.Memory = int64(info.Totalram) * int64(info.Unit) // no host has more
	if h.HardLimits, err = hardLimits(); err != nil {
		return h, err
	}
	nr, err := readInt("/proc/sys/fs/nr_open")
	if err != nil {
		return h, err
	}
	h.NrOpen = uint64(max(nr, 0))
	if h.OOMScoreAdj, err = readInt("/proc/self/oom_score_adj"); err != nil {
		return h, err
	}
	if h.Capabilities, err = cap.Current(); err != nil {
		return h, fmt.Errorf("read capabilities: %w", err)
	}
	h.Resource = slices.Contains(h.Capabilities, "CAP_SYS_RESOURCE")
	return h, nil
}

// hugePages lists the sizes of huge pages in the form that cgroups use. It reads them from the names of directories such as
// hugepages-2048kB.
func hugePages(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // kernel without huge pages
	}
	if err != nil {
		return nil, fmt.Errorf("detect huge pages: %w", err)
	}
	var sizes []string
	for _, e := range entries {
		var size uint64
		if _, err := fmt.Sscanf(e.Name(), "hugepages-%dkB", &size); err != nil {
			return nil, fmt.Errorf("detect huge pages: %s: %w", e.Name(), err)
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

// hasSeccomp installs a filter at an invalid address. A kernel with support for filters returns EFAULT.
func hasSeccomp() bool {
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	return errors.Is(err, unix.EFAULT)
}

// oomScore returns the OOM score adjustment that can be set if want is requested.
func (h Host) oomScore(want int) int {
	if !h.Resource {
		return max(want, h.OOMScoreAdj)
	}
	return want
}
