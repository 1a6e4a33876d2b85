package oci

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxOpenFiles is the limit of open files of a container's processes, the customary value of container engines.
const maxOpenFiles = 1 << 20

// resources are the numbers of the resources of [spec.UlimitNames].
var resources = map[string]int{
	"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE, "locks": unix.RLIMIT_LOCKS,
	"memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS, "rtprio": unix.RLIMIT_RTPRIO, "rttime": unix.RLIMIT_RTTIME,
	"sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// hardLimits returns the hard limits of this process.
func hardLimits() (map[string]uint64, error) {
	limits := make(map[string]uint64, len(resources))
	for name, number := range resources {
		var limit unix.Rlimit
		if err := unix.Getrlimit(number, &limit); err != nil {
			return nil, fmt.Errorf("read limit %s: %w", name, err)
		}
		limits[name] = limit.Max
	}
	return limits, nil
}

// rlimits returns the limits of the processes of a container, sorted by name.
func (h Host) rlimits(c *spec.Container) []specs.POSIXRlimit {
	files := h.openFiles()
	limits := []specs.POSIXRlimit{{Type: typeOf(spec.UlimitOpenFiles), Hard: files, Soft: files}}
	for i := range c.Ulimits {
		u := &c.Ulimits[i]
		soft, hard := u.Limits()
		limit := specs.POSIXRlimit{Type: typeOf(u.Name), Soft: h.value(u.Name, soft), Hard: h.value(u.Name, hard)}
		if u.Name == spec.UlimitOpenFiles {
			limits[0] = limit
			continue
		}
		limits = append(limits, limit)
	}
	order.Sort(limits, func(a, b specs.POSIXRlimit) int { return cmp.Compare(a.Type, b.Type) })
	return limits
}

func typeOf(name string) string { return "RLIMIT_" + strings.ToUpper(name) }

// value returns a limit as the kernel has it.
func (h Host) value(name string, limit int64) uint64 {
	switch {
	case limit != spec.Unlimited:
		return uint64(limit) // not negative
	case name == spec.UlimitOpenFiles:
		return h.NrOpen
	}
	return unix.RLIM_INFINITY
}

// openFiles returns the limit of open files for a container without one of its own.
func (h Host) openFiles() uint64 {
	limit := min(maxOpenFiles, h.NrOpen)
	if !h.Resource {
		limit = min(limit, h.HardLimits[spec.UlimitOpenFiles])
	}
	return limit
}

// CheckProcesses returns why the host cannot set the limits of a pod for its processes. pidsLimit is the limit of all pods, 0 for none.
func (h Host) CheckProcesses(pod *spec.Pod, pidsLimit int64) []lifecycle.Refusal {
	var refused []lifecycle.Refusal
	refuse := func(field, message, hint string) {
		refused = append(refused, lifecycle.Refusal{
			Reason: lifecycle.ReasonUnexpectedAdmissionError, Field: field, Message: message, Hint: hint,
		})
	}
	switch {
	case pod.PidsLimit == nil:
	case !h.Controllers.Has(cgroup.Pids) && h.Rootless: // see CheckRootless
	case !h.Controllers.Has(cgroup.Pids):
		refuse("pidsLimit", "this host has no cgroup controller pids", "remove the limit, or delegate the controller pids to podstead")
	case pidsLimit > 0 && *pod.PidsLimit > pidsLimit:
		refuse("pidsLimit", fmt.Sprintf("%d: must be at most %d, the limit of all pods", *pod.PidsLimit, pidsLimit),
			"lower the limit, or raise pods.pidsLimit in podstead.toml and restart the daemon")
	}
	for _, list := range []struct {
		name       string
		containers []spec.Container
	}{
		{"initContainers", pod.InitContainers}, {"containers", pod.Containers}, {"ephemeralContainers", pod.EphemeralContainers},
	} {
		for i := range list.containers {
			for j := range list.containers[i].Ulimits {
				u := &list.containers[i].Ulimits[j]
				if message, hint := h.checkUlimit(u); message != "" {
					refuse(fmt.Sprintf("%s[%d].ulimits[%d]", list.name, i, j), message, hint)
				}
			}
		}
	}
	return refused
}

// checkUlimit returns why a limit cannot be set; empty: it can.
func (h Host) checkUlimit(u *spec.Ulimit) (message, hint string) {
	soft, hard := u.Limits()
	want := max(h.value(u.Name, soft), h.value(u.Name, hard)) // with an unlimited hard limit, the soft one can exceed the kernel's
	if u.Name == spec.UlimitOpenFiles && want > h.NrOpen {
		return fmt.Sprintf("nofile %d: the kernel allows at most %d open files", want, h.NrOpen),
			"lower the limit, or raise the sysctl fs.nr_open of the host and restart the daemon"
	}
	if most := h.HardLimits[u.Name]; !h.Resource && want > most {
		return fmt.Sprintf("%s %s: the daemon has no CAP_SYS_RESOURCE, and its own limit is %d", u.Name, ulimitText(want), most),
			"change the limit, or Limit" + strings.ToUpper(u.Name) + "= of podstead.service, and restart the daemon"
	}
	return "", ""
}

func ulimitText(limit uint64) string {
	if limit == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(limit, 10)
}
