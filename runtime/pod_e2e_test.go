//go:build e2e

package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// pod is a pod on a host, with one sandbox.
type pod struct {
	*testHost
	*spec.Pod
	attempts int
}

// newPod starts a sandbox for a pod of the given definition. The pod is removed at the end of the test.
func newPod(m *testHost, definition *spec.Pod) *pod {
	m.Helper()
	p := &pod{testHost: m, Pod: m.withArchives(definition)}
	if p.Name == "" {
		p.Name = "p"
	}
	p.sandbox(1)
	m.Cleanup(func() {
		if err := m.RemovePod(m.ctx(), uid, p.Pod); err != nil {
			m.Error(err)
		}
	})
	return p
}

func (p *pod) sandbox(n int) {
	p.Helper()
	if _, err := p.StartSandbox(p.ctx(), uid, p.Pod, lifecycle.StartSandbox{Sandbox: n, Round: n}); err != nil {
		p.Fatal(err)
	}
}

// start adds a container to the pod and starts it.
func (p *pod) start(c spec.Container) (lifecycle.Ref, error) {
	p.attempts++
	c.Name = fmt.Sprintf("c%d", p.attempts)
	if c.Image == "" {
		c.Image = busybox
	}
	p.Containers = append(p.Containers, c)
	ref := lifecycle.Ref{Container: c.Name, Round: 1, Attempt: 1}
	_, err := p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1})
	return ref, err
}

// output runs a container and returns its output. The container must exit with 0.
func (p *pod) output(c spec.Container) string {
	p.Helper()
	ref, err := p.start(c)
	if err != nil {
		p.Fatal(err)
	}
	return p.outputOf(ref)
}

// outputOf waits for the exit of a container, which must be with 0, and returns its output.
func (p *pod) outputOf(ref lifecycle.Ref) string {
	p.Helper()
	exit := p.wait(ref)
	out := p.log(ref)
	if exit.Code != 0 {
		p.Fatalf("exit %+v with output\n%s", exit, out)
	}
	return out
}

// log returns the output of a container from its log, without the prefixes of the log format.
func (p *pod) log(ref lifecycle.Ref) string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.opts.LogDir, p.Name+"_"+uid, ref.Container, "0.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.Fatal(err)
	}
	return logPrefix.ReplaceAllString(string(text), "")
}

func sh(script string) spec.Container { return spec.Container{Command: []string{"sh", "-c", script}} }

// eventually waits for a condition. cond also returns the state that it has observed.
func (m *testHost) eventually(what string, cond func() (string, bool)) {
	m.Helper()
	for end := time.Now().Add(deadline); ; <-time.After(10 * time.Millisecond) {
		last, ok := cond()
		if ok {
			return
		}
		if time.Now().After(end) {
			m.Fatalf("timeout: %s; last state: %s", what, last)
		}
	}
}

func wantLines(t testing.TB, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(got, "\n"), "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
