//go:build e2e

package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func BenchmarkContainerLife(b *testing.B) {
	w := newEnv(b)
	e := w.start()
	defer w.stop(e)
	s := w.sandbox(e, "pod")
	defer w.remove(e, "pod")
	for i := 0; b.Loop(); i++ {
		c := w.run(s, fmt.Sprintf("c%d", i), "exit 0")
		w.exited(c)
		w.delete(c)
	}
}

func BenchmarkSandbox(b *testing.B) {
	w := newEnv(b)
	e := w.start()
	defer w.stop(e)
	for b.Loop() {
		w.sandbox(e, "pod")
		w.remove(e, "pod")
	}
}

// BenchmarkShimMemory measures the memory (PSS) of a shim among ten of them, with zero, one and five containers.
func BenchmarkShimMemory(b *testing.B) {
	const pods = 10
	w := newEnv(b)
	e := w.start()
	defer w.stop(e)
	var sandboxes []*Sandbox
	for i := range pods {
		id := fmt.Sprintf("pod%d", i)
		sandboxes = append(sandboxes, w.sandbox(e, id))
		defer w.remove(e, id)
	}
	var cs []*container
	defer func() {
		for _, c := range cs {
			w.delete(c)
		}
	}()
	have, kib := 0, map[int]float64{}
	for _, n := range []int{0, 1, 5} {
		for ; have < n; have++ {
			for i, s := range sandboxes {
				cs = append(cs, w.run(s, fmt.Sprintf("c%d-%d", i, have), "while :; do echo x; sleep 1; done"))
			}
		}
		<-time.After(15 * time.Second) // an idle shim returns memory to the kernel
		sum := 0
		for _, s := range sandboxes {
			sum += pss(b, s.Pid())
		}
		kib[n] = float64(sum / pods)
	}
	for b.Loop() { // b.Loop resets metrics when it starts, so report them inside
		continue
	}
	for n, v := range kib {
		b.ReportMetric(v, fmt.Sprintf("KiB-PSS/%d-containers", n))
	}
}

// pss returns a process's proportional set size in KiB.
func pss(t testing.TB, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\nPss:")
	var n int
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
