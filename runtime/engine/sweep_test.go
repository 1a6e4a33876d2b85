package engine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSweep(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	tasks := filepath.Join(state, "io.containerd.runtime.v2.task", Namespace)
	work := filepath.Join(root, "io.containerd.runtime.v2.task", Namespace)
	sandboxes := filepath.Join(state, "io.containerd.sandbox.controller.v1.shim", Namespace)
	gone := []string{
		filepath.Join(sandboxes, ".renamed"), filepath.Join(state, "unresponsive", "s", Namespace, ".renamed"),
		filepath.Join(root, "tmpmounts", "containerd-mount1"), filepath.Join(tasks, ".renamed"), filepath.Join(work, "lost"),
		filepath.Join(root, "io.containerd.sandbox.controller.v1.shim", Namespace, "lost"),
		filepath.Join(state, "monitor", "pty1"), filepath.Join(state, "monitor", "pty1", "pty.sock"),
	}
	kept := []string{
		filepath.Join(root, "tmpmounts", "containerd-mount2", "full"), filepath.Join(tasks, "bundle", "rootfs"),
		filepath.Join(state, "monitor", "containers"), filepath.Join(work, "bundle"),
		filepath.Join(sandboxes, "bundle"), filepath.Join(tasks, ".mounted", "rootfs", "bin"),
	}
	for _, dir := range append(append([]string{filepath.Join(tasks, ".renamed", "rootfs")}, gone...), kept...) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweep(root, state); err == nil {
		t.Error("sweep of a bundle whose rootfs is not empty succeeded")
	}
	for _, dir := range gone {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s was not removed", dir)
		}
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s was removed", dir)
		}
	}
}
