//go:build e2e

package runtime_test

import (
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// BenchmarkContainerLife measures the start, the exit and the removal of a container that exits at once.
func BenchmarkContainerLife(b *testing.B) {
	m := newTestHost(b)
	pod := &spec.Pod{
		Name: "bench", ImageArchives: m.archives, Containers: []spec.Container{{Name: "c", Image: busybox, Command: []string{"true"}}},
	}
	if _, err := m.StartSandbox(m.ctx(), "bench", pod, lifecycle.StartSandbox{Sandbox: 1, Round: 1}); err != nil {
		b.Fatal(err)
	}
	for n := 1; b.Loop(); n++ {
		ref := lifecycle.Ref{Container: "c", Round: 1, Attempt: n}
		a := lifecycle.StartContainer{Ref: ref, Sandbox: 1, Restarts: n}
		if _, err := m.StartContainer(m.ctx(), "bench", pod, a); err != nil {
			b.Fatal(err)
		}
		if _, _, err := m.WaitContainer(m.ctx(), "bench", ref); err != nil {
			b.Fatal(err)
		}
		if err := m.RemoveContainer(m.ctx(), "bench", pod, ref); err != nil {
			b.Fatal(err)
		}
	}
	if err := m.RemovePod(m.ctx(), "bench", pod); err != nil {
		b.Fatal(err)
	}
}
