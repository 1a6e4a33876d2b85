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

// groups finds the cgroups of a container by one of its processes, whatever the version and the driver are. With cgroup v1 each
// controller has one.
type groups struct {
	*pod
	unified bool
	places  map[string]string // by controller; "" with v2
}

func (p *pod) groups(ref lifecycle.Ref) groups {
	p.Helper()
	g := groups{pod: p, places: map[string]string{}}
	controllers, err := cgroup.DetectControllers()
	if err != nil {
		p.Fatal(err)
	}
	g.unified = controllers.Unified
	for line := range strings.Lines(p.proc(p.pidOf(ref), "cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for name := range strings.SplitSeq(parts[1], ",") {
			g.places[name] = parts[2]
		}
	}
	return g
}

// dir is the container's folder of a controller.
func (g groups) dir(controller string) string {
	if g.unified {
		return filepath.Join("/sys/fs/cgroup", g.places[""])
	}
	return filepath.Join("/sys/fs/cgroup", controller, g.places[controller])
}

// read is what a file of a cgroup says, without the end of its line; "none" where there is no such file.
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

// held is what a cgroup holds: CPU time in a period of 100 ms, memory, both with swap, processes. The folder of a controller is
// dir's, or with pod the one above.
func (g groups) held(pod bool) string {
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
				return "max" // in whole pages
			}
			return strconv.FormatInt(n, 10)
		}
		memory, swap = bytes("memory.limit_in_bytes"), bytes("memory.memsw.limit_in_bytes")
	}
	return fmt.Sprintf("cpu %s memory %s swap %s pids %s", cpu, memory, swap, g.read(at("pids"), "pids.max"))
}

// shares are what a cgroup has of CPU time, as shares of cgroup v1. With v2 there are weights: the pod's by the kubelet's line, those
// of containers by a curve of the OCI runtime, in newer ones another than in older ones.
func (g groups) hasShares(pod bool, shares uint64) bool {
	g.Helper()
	dir := g.dir("cpu")
	if pod {
		dir = filepath.Dir(dir)
	}
	if !g.unified {
		return g.read(dir, "cpu.shares") == strconv.FormatUint(shares, 10)
	}
	weight, line := g.read(dir, "cpu.weight"), strconv.FormatUint(cgroup.PodWeight(shares), 10)
	l := math.Log2(float64(shares))
	curve := strconv.Itoa(int(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34))))
	return weight == line || !pod && weight == curve
}
