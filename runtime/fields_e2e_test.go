//go:build e2e

package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The tests of fields use pod files and check the result inside the containers. docs/fields.md is generated from the lines "fields:" in
// their comments.

// parse parses a pod file in the directory of the host.
func (m *testHost) parse(text string) *spec.Pod {
	m.Helper()
	definition, problems := spec.Accept(filepath.Join(m.dir, "pod.toml"), []byte(text))
	if len(problems) > 0 {
		m.Fatal(problems)
	}
	return m.withArchives(definition)
}

// withArchives adds the archives that were imported to a pod that lists none.
func (m *testHost) withArchives(p *spec.Pod) *spec.Pod {
	if len(p.ImageArchives) == 0 {
		p.ImageArchives = m.archives
	}
	return p
}

// write creates a file and its parent directories in the directory of the host.
func (m *testHost) write(name, text string, mode os.FileMode) {
	m.Helper()
	file := filepath.Join(m.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), mode)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// begin starts a container of the pod file.
func (p *pod) begin(name string) (lifecycle.Ref, error) {
	ref := lifecycle.Ref{Container: name, Round: 1, Attempt: 1}
	_, err := p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1})
	return ref, err
}

// run starts a container of the pod file, waits for its exit, which must be with 0, and returns its output.
func (p *pod) run(name string) string {
	p.Helper()
	ref, err := p.begin(name)
	if err != nil {
		p.Fatal(err)
	}
	return p.outputOf(ref)
}

// serve starts a container of the pod file and waits until it has written "ready".
func (p *pod) serve(name string) lifecycle.Ref {
	p.Helper()
	ref, err := p.begin(name)
	if err != nil {
		p.Fatal(err)
	}
	p.eventually(name+" is ready", func() (string, bool) {
		log := p.log(ref)
		return log, strings.Contains(log, "ready\n")
	})
	return ref
}

// wantFailure checks the reason of a failure and a part of its message.
func wantFailure(t testing.TB, what string, err error, reason lifecycle.Reason, message string) {
	t.Helper()
	if f, _ := errors.AsType[lifecycle.Failure](err); f.Reason != reason || !strings.Contains(f.Message, message) {
		t.Errorf("%s: %#v, want %s with %q", what, err, reason, message)
	}
}
