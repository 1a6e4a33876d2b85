//go:build e2e

package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// loggedRuntime writes a program that is an OCI runtime and logs its arguments, and returns its path and what reads the log.
func (m *testHost) loggedRuntime() (program string, calls func() string) {
	m.Helper()
	log := filepath.Join(m.dir, "calls")
	m.write("oci", fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\nexec %s \"$@\"\n", log, runtimeUnderTest()), 0o755)
	m.write("calls", "", 0o600)
	return filepath.Join(m.dir, "oci"), func() string {
		m.Helper()
		text, err := os.ReadFile(log)
		if err != nil {
			m.Fatal(err)
		}
		return string(text)
	}
}

const classFile = `
name = "web"
runtimeClassName = "logged"
shareProcessNamespace = true
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo ready; exec sleep 100000"]
`

// TestFieldsRuntimeClass tests that the OCI runtime of a class runs a pod, and that the pod keeps it when the class is removed, until its
// next sandbox.
//
// fields: runtimeClassName
func TestFieldsRuntimeClass(t *testing.T) {
	m := newTestHost(t)
	program, calls := m.loggedRuntime()
	m.opts.RuntimeClasses = map[string]string{"logged": program, "broken": "/no/such/runtime"}
	m.SetRuntimeClasses(m.opts.RuntimeClasses)
	for class, want := range map[string]string{
		"logged": "", "broken": `RuntimeClass "broken": OCI runtime not found: `,
		"none": `RuntimeClassUnavailable: runtimeClassName: RuntimeClass "none" not found, this host has broken, logged`,
	} {
		file := strings.Replace(classFile, `"logged"`, `"`+class+`"`, 1)
		if err := m.Admit(m.parse(file)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("admission of class %s: %v, want %q", class, err, want)
		}
	}
	p := newPod(m, m.parse(classFile))
	ref := p.serve("c")
	id := m.idOf(ref)
	for _, want := range []string{" create ", " start " + id} {
		if !strings.Contains(calls(), want) {
			t.Errorf("the OCI runtime of the class was called with\n%s, want%s", calls(), want)
		}
	}
	if n := strings.Count(calls(), " create "); n != 2 { // the process of the sandbox, and the container
		t.Errorf("%d containers were created with the OCI runtime of the class, want 2:\n%s", n, calls())
	}

	// The class is removed, and the daemon restarted.
	m.opts.RuntimeClasses = nil
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.start()
	if err := os.Truncate(filepath.Join(m.dir, "calls"), 0); err != nil {
		t.Fatal(err)
	}
	if code, out, err := p.exec(ref, 0, "echo inside"); code != 0 || out != "inside\n" || err != nil {
		t.Errorf("command: %d, %q, %v", code, out, err)
	}
	if err := p.KillContainer(p.ctx(), uid, ref); err != nil {
		t.Fatal(err)
	}
	p.wait(ref)
	again := lifecycle.Ref{Container: "c", Round: 1, Attempt: 2}
	if _, err := p.StartContainer(p.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: again, Sandbox: 1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" exec ", " delete ", " create "} {
		if !strings.Contains(calls(), want) {
			t.Errorf("after the class was removed, its OCI runtime was called with\n%s, want%s", calls(), want)
		}
	}
	if err := m.RemoveSandbox(m.ctx(), uid, 1); err != nil {
		t.Fatal(err)
	}
	_, err := m.StartSandbox(m.ctx(), uid, p.Pod, lifecycle.StartSandbox{Sandbox: 2, Round: 2})
	wantFailure(t, "the next sandbox", err, lifecycle.ReasonRuntimeClassUnavailable, `RuntimeClass "logged" not found, this host has none`)

	// Another pod does not have a class.
	if err := os.Truncate(filepath.Join(m.dir, "calls"), 0); err != nil {
		t.Fatal(err)
	}
	m.SetRuntimeClasses(map[string]string{"logged": program})
	p.RuntimeClassName = ""
	p.sandbox(2)
	if got := calls(); got != "" {
		t.Errorf("without a class, its OCI runtime was called with\n%s", got)
	}
}
