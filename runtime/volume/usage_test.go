package volume

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

func TestUsage(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(
		spec.Volume{Name: "limited", EmptyDir: &spec.EmptyDirVolume{SizeLimit: quantity("1Mi")}},
		spec.Volume{Name: "free", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "zero", EmptyDir: &spec.EmptyDirVolume{SizeLimit: quantity("0")}},
	)
	if list, err := s.Usage(t.Context(), pod); err != nil || len(list) != 0 {
		t.Errorf("before Prepare: %v, %v", list, err)
	}
	if err := s.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	exceeded := func() (string, int64) {
		t.Helper()
		list, err := s.Usage(t.Context(), pod)
		if err != nil || len(list) != 2 || list[0].Volume != "limited" || list[1].Volume != "zero" {
			t.Fatalf("usage: %+v, %v", list, err)
		}
		if message, over := list[1].Exceeded(); over {
			t.Errorf("zero limit: %s", message)
		}
		message, over := list[0].Exceeded()
		if over != (message != "") {
			t.Errorf("exceeded: %v, %q", over, message)
		}
		return message, list[0].Bytes
	}
	dir := s.path(pod.UID, &pod.Spec.Volumes[0])
	filetest.Write(t, filepath.Join(dir, "deep", "file"), strings.Repeat("x", 600<<10))
	if err := os.Link(filepath.Join(dir, "deep", "file"), filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(t.TempDir(), "big")
	filetest.Write(t, big, strings.Repeat("x", 2<<20))
	filetest.Symlink(t, big, filepath.Join(dir, "link"))
	filetest.Symlink(t, filepath.Dir(big), filepath.Join(dir, "folder"))
	if message, bytes := exceeded(); message != "" || bytes < 600<<10 || bytes >= 1<<20 {
		t.Errorf("%d bytes: %q", bytes, message)
	}
	filetest.Write(t, filepath.Join(dir, "more"), strings.Repeat("x", 600<<10))
	message, _ := exceeded()
	if want := `Usage of EmptyDir volume "limited" exceeds the limit "1Mi". `; message != want {
		t.Errorf("got  %q\nwant %q", message, want)
	}
	if err := os.Remove(filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if message, _ := exceeded(); message != "" {
		t.Errorf("after deleting a file: %q", message)
	}
	many := filepath.Join(dir, "many")
	for i := range 256 {
		filetest.Write(t, filepath.Join(many, strconv.Itoa(i)), "")
	}
	message, bytes := exceeded()
	want := `Usage of EmptyDir volume "limited" exceeds the limit "1Mi": each of its 262 files counts as at least 4096 bytes. `
	if message != want {
		t.Errorf("%d bytes\ngot  %q\nwant %q", bytes, message, want)
	}
	if err := os.RemoveAll(many); err != nil {
		t.Fatal(err)
	}
	filetest.DeepTree(t, filepath.Join(dir, "abyss"), maxDepth+1) // too deep to be measured
	message, _ = exceeded()
	if want := `Usage of EmptyDir volume "limited" with the limit "1Mi" cannot be measured: more than 512 ` +
		`directory levels. `; message != want {
		t.Errorf("got  %q\nwant %q", message, want)
	}
	if used, err := s.DiskUsage(t.Context(), pod.UID, dir); used.Bytes != MaxUsage || used.Counted != MaxUsage || err != nil {
		t.Errorf("usage of a directory that is too deep: %+v, %v", used, err)
	}
	if err := s.Teardown(t.Context(), pod.UID); err != nil {
		t.Error(err)
	}
}

// With a limit of the pod, all volumes count, and any directory can be measured.
func TestUsageWithPodLimit(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(
		spec.Volume{Name: "free", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "memory", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}},
	)
	pod.Spec.Containers = []spec.Container{{
		Name: "c", Resources: spec.Resources{Limits: spec.ResourceList{spec.ResourceEphemeralStorage: *quantity("1Mi")}},
	}}
	dir := s.path(pod.UID, &pod.Spec.Volumes[0])
	filetest.Write(t, filepath.Join(dir, "file"), strings.Repeat("x", 64<<10))
	list, err := s.Usage(t.Context(), pod)
	if err != nil || len(list) != 1 || list[0].Volume != "free" || list[0].Bytes < 64<<10 {
		t.Errorf("usage: %+v, %v", list, err)
	}
	for _, u := range list {
		if message, over := u.Exceeded(); over {
			t.Errorf("without a limit: %s", message)
		}
	}
	used, err := s.DiskUsage(t.Context(), pod.UID, dir, filepath.Join(dir, "none"), dir)
	if err != nil || used.Bytes < 128<<10 || used.Files != 4 {
		t.Errorf("usage of a directory twice and a missing one: %+v, %v", used, err)
	}
	filetest.Symlink(t, "x", filepath.Join(dir, "link")) // it has no block
	more, err := s.DiskUsage(t.Context(), pod.UID, dir, dir)
	if err != nil || more.Bytes != used.Bytes || more.Counted != used.Counted+2*FileBytes {
		t.Errorf("usage with a small file: %+v, %v, before %+v", more, err, used)
	}
	if _, err := s.DiskUsage(t.Context(), pod.UID, filepath.Join(dir, "file")); err == nil {
		t.Error("no error for a file")
	}
}

// A volume in huge pages is measured if it has a limit. A limit of disk space does not apply to it.
func TestUsageOfHugePages(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(
		spec.Volume{Name: "free", EmptyDir: &spec.EmptyDirVolume{Medium: "HugePages"}},
		spec.Volume{Name: "limited", EmptyDir: &spec.EmptyDirVolume{Medium: "HugePages-2Mi", SizeLimit: quantity("4Ki")}},
	)
	pod.Spec.Containers = []spec.Container{{
		Name: "c", Resources: spec.Resources{Limits: spec.ResourceList{spec.ResourceEphemeralStorage: *quantity("1Mi")}},
	}}
	for i := range pod.Spec.Volumes {
		filetest.Write(t, filepath.Join(s.path(pod.UID, &pod.Spec.Volumes[i]), "file"), strings.Repeat("x", 64<<10))
	}
	list, err := s.Usage(t.Context(), pod)
	if err != nil || len(list) != 1 || list[0].Volume != "limited" || !list[0].HugePages {
		t.Fatalf("usage: %+v, %v", list, err)
	}
	if _, over := list[0].Exceeded(); !over {
		t.Errorf("%+v does not exceed its limit", list[0])
	}
}

// A measurement does not wait for other operations on the pod's volumes.
func TestUsageDuringPrepare(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf()
	release, err := s.locks.Lock(t.Context(), "pod/"+pod.UID) // held as by Prepare
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Usage(ctx, pod); err != nil {
		t.Error(err)
	}
	if _, err := s.DiskUsage(ctx, pod.UID, t.TempDir()); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "a/b"} {
		if _, err := s.DiskUsage(ctx, bad); err == nil {
			t.Errorf("no error for UID %q", bad)
		}
	}
}
