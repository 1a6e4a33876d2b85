//go:build e2e

package engine

import (
	"fmt"
	"testing"
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
