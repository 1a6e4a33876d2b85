package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// busy returns a pod of 20 containers with hooks, probes and rules, and facts with a full history of each.
func busy() (*spec.Pod, lifecycle.Facts) {
	names := []string{"init"}
	past := history{up(), ran("init", 1, 0)}
	for i := range 20 {
		name := fmt.Sprintf("app-%02d", i)
		names = append(names, name)
		past = append(past, pullFailed(name, 1, 1, lifecycle.ReasonErrImagePull), ran(name, 1, 1), ran(name, 2, 1), running(name, 3))
		if i%2 == 0 {
			past = append(past, exited(name, 3, 1), removeContainer(name, 2), containerRemoved(name, 2))
		}
	}
	pod := podOf(spec.RestartAlways, names...)
	for _, name := range names[1:] {
		within(pod, name, probe(liveness), probe(readiness), hook(lifecycle.PreStop), own(always, rule(restartAll, "In", 42)))
	}
	return pod, fold(past)
}

// TestDecideAllocations limits the number of allocations of a decision about a busy pod.
func TestDecideAllocations(t *testing.T) {
	pod, facts := busy()
	if n := testing.AllocsPerRun(100, func() { lifecycle.Decide(pod, facts, at(2)) }); n >= 10 {
		t.Errorf("%v allocations, want less than 10", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	pod, facts := busy()
	b.ReportAllocs()
	for b.Loop() {
		if d := lifecycle.Decide(pod, facts, at(2)); len(d.Actions) != 0 || d.Wake != at(21) || len(d.Probes) != 20 {
			b.Fatal(d)
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	pod, facts := busy()
	b.ReportAllocs()
	for b.Loop() {
		if s := lifecycle.StatusOf(pod, facts, at(2)); s.Phase != lifecycle.PhaseRunning {
			b.Fatal(s)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	_, facts := busy()
	e := lifecycle.ContainerExited{Ref: run("app-01", 3), At: at(2)}
	b.ReportAllocs()
	for b.Loop() {
		if f := facts.Apply(e); f.Container("app-01").Newest.Exited.IsZero() {
			b.Fatal(f)
		}
	}
}
