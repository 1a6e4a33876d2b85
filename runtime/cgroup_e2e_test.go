//go:build e2e

package runtime_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// groups are the cgroups of a container, found by one of its processes, with any cgroup version and driver. With cgroup v1 there is one
// for each controller.
type groups struct {
	*pod
	unified bool
	paths   map[string]string // by controller; "" with v2
}

func (p *pod) groups(ref lifecycle.Ref) groups {
	p.Helper()
	return p.groupsOf(p.pidOf(ref))
}

// groupsOf returns the cgroups of the container that has a process.
func (p *pod) groupsOf(pid int) groups {
	p.Helper()
	g := groups{pod: p, paths: map[string]string{}}
	controllers, err := cgroup.DetectControllers()
	if err != nil {
		p.Fatal(err)
	}
	g.unified = controllers.Unified
	for line := range strings.Lines(p.proc(pid, "cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for name := range strings.SplitSeq(parts[1], ",") {
			g.paths[name] = parts[2]
		}
	}
	return g
}

// dir returns the directory of the container's cgroup for a controller.
func (g groups) dir(controller string) string {
	if g.unified {
		return filepath.Join("/sys/fs/cgroup", g.paths[""])
	}
	return filepath.Join("/sys/fs/cgroup", controller, g.paths[controller])
}

// read returns the content of a file of a cgroup without the newline; "none" if the file does not exist.
func (g groups) read(dir, file string) string {
	g.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if os.IsNotExist(err) {
		return "none"
	}
	if err != nil {
		g.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// limits returns the limits of a cgroup: CPU time in a period of 100 ms, memory, memory with swap, processes. The cgroup is that of the
// container, or its parent, that of the pod.
func (g groups) limits(pod bool) string {
	g.Helper()
	at := func(controller string) string {
		if pod {
			return filepath.Dir(g.dir(controller))
		}
		return g.dir(controller)
	}
	cpu, memory, swap := "", "", ""
	if g.unified {
		cpu = strings.TrimSuffix(g.read(at("cpu"), "cpu.max"), " 100000")
		memory, swap = g.read(at("memory"), "memory.max"), g.read(at("memory"), "memory.swap.max")
		if swap == "0" {
			swap = memory
		}
	} else {
		cpu = g.read(at("cpu"), "cpu.cfs_quota_us")
		if cpu == "-1" {
			cpu = "max"
		}
		bytes := func(file string) string {
			n, err := strconv.ParseInt(g.read(at("memory"), file), 10, 64)
			if err == nil && n > math.MaxInt64-1<<20 {
				return "max" // rounded to pages
			}
			return strconv.FormatInt(n, 10)
		}
		memory, swap = bytes("memory.limit_in_bytes"), bytes("memory.memsw.limit_in_bytes")
	}
	return fmt.Sprintf("cpu %s memory %s swap %s pids %s", cpu, memory, swap, g.read(at("pids"), "pids.max"))
}

// hasShares reports whether a cgroup has these shares of CPU time. cgroup v2 has weights: the kubelet computes the pod's with a linear
// function, and the OCI runtime those of containers, newer versions with a different function than older ones.
func (g groups) hasShares(pod bool, shares uint64) bool {
	g.Helper()
	dir := g.dir("cpu")
	if pod {
		dir = filepath.Dir(dir)
	}
	if !g.unified {
		return g.read(dir, "cpu.shares") == strconv.FormatUint(shares, 10)
	}
	weight, linear := g.read(dir, "cpu.weight"), strconv.FormatUint(cgroup.PodWeight(shares), 10)
	l := math.Log2(float64(shares))
	curve := strconv.Itoa(int(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34))))
	return weight == linear || !pod && weight == curve
}
