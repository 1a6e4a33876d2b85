//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/test/transcript"
)

// pageNames returns the pages of TestPages.
func pageNames() []string {
	return append(baseNames("../../docs/howto/coming-from-*.md", ""),
		"manage-images.md", "carry-pods-to-hosts-without-network.md", "registries.md", "verify-image-signatures.md",
		"keep-the-disk-free.md", "keep-logs-bounded.md", "images-without-a-registry.md", "outgrowing-one-host.md", "test-your-pod-files.md",
		"run-jobs-at-night.md", "seal-secrets.md", "use-devices.md")
}

// TestPages runs every command of the pages for users of other tools, of those about images, and of others, on real containers, in order,
// and compares the output that they show.
func TestPages(t *testing.T) {
	for _, name := range pageNames() {
		path := filepath.Join("../../docs/howto", name)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := transcript.Parse(string(text), "podstead")
			if err != nil || len(steps) == 0 {
				t.Fatalf("%s: %d steps, %v", path, len(steps), err)
			}
			shell := newPageHost(t)
			for i := range steps {
				step := &steps[i]
				if err := shell.Run(t.Context(), step); err != nil {
					t.Errorf("%s:%d: %s: %v", path, step.Line, step.Command, err)
				}
			}
		})
	}
}

// TestKubectlLines runs lines that the documentation of Kubernetes teaches. The name kubectl is a symbolic link to podstead.
func TestKubectlLines(t *testing.T) {
	text, err := os.ReadFile("testdata/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := transcript.Parse(string(text), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	shell := newPageHost(t)
	lines := 0
	for i := range steps {
		step := &steps[i]
		if step.File == "" {
			lines++
		}
		t.Run(fmt.Sprintf("line %d", step.Line), func(t *testing.T) {
			if err := shell.Run(t.Context(), step); err != nil {
				t.Errorf("%s: %v", step.Command, err)
			}
		})
	}
	if lines < 30 {
		t.Errorf("%d lines, want at least 30", lines)
	}
}
