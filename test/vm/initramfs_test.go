package vm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadOrder(t *testing.T) {
	const dep = `kernel/virtio/virtio.ko:
kernel/virtio/virtio_ring.ko: kernel/virtio/virtio.ko
kernel/virtio/virtio_pci.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko
kernel/block/virtio_blk.ko: kernel/virtio/virtio_ring.ko kernel/virtio/virtio.ko
`
	got, err := loadOrder(dep, []string{"virtio_pci", "virtio_blk"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"kernel/virtio/virtio.ko", "kernel/virtio/virtio_ring.ko", "kernel/virtio/virtio_pci.ko", "kernel/block/virtio_blk.ko"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := loadOrder(dep, []string{"floppy"}); err == nil || !strings.Contains(err.Error(), "floppy") {
		t.Errorf("a module that does not exist: %v", err)
	}
}

// TestInitramfs checks that the archive holds the agent and the modules, in the format that the kernel unpacks.
func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	agent, module := filepath.Join(dir, "agent"), filepath.Join(dir, "00-a.ko")
	for path, text := range map[string]string{agent: "program", module: "module!"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "initramfs")
	if err := writeInitramfs(file, agent, []string{module}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// magic, inode, mode, links, size, length of the name, as in the kernel's buffer-format.rst
	head := func(inode, mode, size, name string) string {
		return "070701" + inode + mode + "0000000000000000" + "00000001" + "00000000" + size + strings.Repeat("0", 32) + name + "00000000"
	}
	want := head("00000001", "000081ED", "00000007", "00000005") + "init\x00\x00" + "program\x00" +
		head("00000002", "000041ED", "00000000", "00000008") + "modules\x00\x00\x00" +
		head("00000003", "000081ED", "00000007", "00000010") + "modules/00-a.ko\x00\x00\x00" + "module!\x00" +
		head("00000000", "00000000", "00000000", "0000000B") + "TRAILER!!!\x00\x00\x00\x00"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCandidates(t *testing.T) {
	const policy = `systemd:
  Installed: (none)
  Candidate: 252.39
  Version table:
     252.39 500
        500 http://example.org bookworm/main amd64 Packages
runc:
  Installed: 1.1.5
  Candidate: 1.1.6
`
	got, err := candidates(policy)
	if diff := cmp.Diff([]string{"runc 1.1.6", "systemd 252.39"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if _, err := candidates("nothing:\n  Candidate: (none)\n"); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a package that does not exist: %v", err)
	}
}

// TestPayload checks that the size of a payload is a multiple of the sector size.
func TestPayload(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), 700), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk")
	if err := WritePayload(disk, dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(disk)
	if err != nil || info.Size()%sector != 0 {
		t.Errorf("%v, %v, want a multiple of %d bytes", info, err, sector)
	}
	if out, err := exec.Command("tar", "-tf", disk).CombinedOutput(); err != nil || string(out) != "f\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := WritePayload(disk, filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}
