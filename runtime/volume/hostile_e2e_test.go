//go:build e2e

package volume

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// While a container exchanges a directory for a link out of the volume, nothing outside is mounted for another container.
func TestMountsRace(t *testing.T) {
	s := newSet(t, nil)
	pod := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	outside := filetest.Mkdir(t, filepath.Join(t.TempDir(), "outside", "deep"))
	disk := s.path(pod.UID, &pod.Spec.Volumes[0])
	filetest.Mkdir(t, filepath.Join(disk, "a", "deep"))
	filetest.Symlink(t, filepath.Dir(outside), filepath.Join(disk, "b"))
	forbidden := filetest.Stat(t, outside).Ino
	var group sync.WaitGroup
	stop := make(chan struct{})
	filetest.Swap(t, &group, stop, filepath.Join(disk, "a"), filepath.Join(disk, "b"))
	deadline := time.Now().Add(testTimeout)
	mounted, refused := 0, 0
	for n := 0; n < 300 || (mounted == 0 || refused == 0) && time.Now().Before(deadline); n++ {
		list, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{
			{Name: "data", MountPath: "/a", SubPath: "a/deep"}, {Name: "data", MountPath: "/b", SubPath: "a/deep/" + strconv.Itoa(n)},
		}}})
		if err != nil {
			refused++
			continue
		}
		mounted++
		for _, m := range list {
			if filetest.Stat(t, m.Source).Ino == forbidden {
				t.Fatal("mounted a directory outside of the volume")
			}
		}
	}
	close(stop)
	group.Wait()
	t.Logf("mounted %d times, refused %d times", mounted, refused)
	if entries, err := os.ReadDir(outside); len(entries) > 0 || err != nil {
		t.Errorf("created outside: %v, %v", entries, err)
	}
	if mounted == 0 || refused == 0 {
		t.Errorf("race not reproduced: mounted %d times, refused %d times", mounted, refused)
	}
}

func TestPropagation(t *testing.T) {
	s := newSet(t, nil)
	base := t.TempDir()
	shared := tmpfsAt(t, filepath.Join(base, "shared"), unix.MS_SHARED)
	private := tmpfsAt(t, filepath.Join(base, "private"), unix.MS_PRIVATE)
	slave := filetest.Mkdir(t, filepath.Join(base, "slave"))
	if err := errors.Join(unix.Mount(shared, slave, "", unix.MS_BIND, ""), unix.Mount("", slave, "", unix.MS_SLAVE, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(slave, unix.MNT_DETACH) })
	filetest.Mkdir(t, filepath.Join(shared, "sub", "inner"))
	filetest.Mkdir(t, filepath.Join(private, "sub"))
	host := func(name, path string) spec.Volume {
		return spec.Volume{Name: name, HostPath: &spec.HostPathVolume{Path: path, Type: spec.HostPathDirectory}}
	}
	pod := podOf(host("shared", shared), host("private", private), host("slave", slave))
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	for _, sub := range []string{"", "sub"} {
		for _, test := range []struct{ volume, propagation, err string }{
			{"private", "None", ""},
			{"private", "HostToContainer", `path "` + private + `" is mounted on "` + private + `" but it is not a shared or slave mount`},
			{"private", "Bidirectional", `path "` + private + `" is mounted on "` + private + `" but it is not a shared mount`},
			{"slave", "HostToContainer", ""},
			{"slave", "Bidirectional", "but it is not a shared mount"},
			{"shared", "HostToContainer", ""},
			{"shared", "Bidirectional", ""},
		} {
			_, err := s.Mounts(t.Context(), pod, Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{
				{Name: test.volume, MountPath: "/x", SubPath: sub, MountPropagation: test.propagation},
			}}})
			t.Logf("%s of %q %q", test.propagation, test.volume, sub)
			filetest.WantError(t, err, test.err)
		}
	}
	// New mounts of the host propagate to containers with HostToContainer and Bidirectional; mounts in the container
	// propagate back only with Bidirectional.
	mount := func(propagation string) spec.VolumeMount {
		return spec.VolumeMount{Name: "shared", MountPath: "/" + propagation, SubPath: "sub", MountPropagation: propagation}
	}
	sources := mountsOf(t, s, pod, "run", mount("None"), mount("HostToContainer"), mount("Bidirectional"))
	inner := tmpfsAt(t, filepath.Join(shared, "sub", "inner"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(inner, "file"), "kept")
	var saw []bool
	for _, source := range sources {
		_, err := os.Stat(filepath.Join(source, "inner", "file"))
		saw = append(saw, err == nil)
	}
	if diff := cmp.Diff([]bool{false, true, true}, saw); diff != "" {
		t.Errorf("visibility of a new mount (-want +got):\n%s", diff)
	}
	for i, want := range []bool{false, false, true} {
		place := filetest.Mkdir(t, filepath.Join(sources[i], "back"))
		if err := unix.Mount("tmpfs", place, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		if mounted := len(mountsBelow(t, filepath.Join(shared, "sub", "back"))) > 0; mounted != want {
			t.Errorf("mount in %s propagated to the host: %v, want %v", sources[i], mounted, want)
		}
	}
	if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
		t.Error(err)
	}
	if filetest.Read(t, filepath.Join(inner, "file")) != "kept" {
		t.Error("a mount of the host was unmounted")
	}
}

// Teardown removes everything that a container left in a volume (links, bind mounts of host directories, stacked mounts),
// but not what these refer to.
func TestTeardown(t *testing.T) {
	values := &fakeValues{configMaps: map[string]map[string]string{"shop": {"color": "red"}}}
	s := newSet(t, values)
	host := tmpfsAt(t, filepath.Join(t.TempDir(), "host"), unix.MS_SHARED)
	below := tmpfsAt(t, filepath.Join(host, "below"), unix.MS_SHARED)
	filetest.Write(t, filepath.Join(host, "file"), "kept")
	filetest.Write(t, filepath.Join(below, "file"), "kept")
	pod := podOf(
		spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "cache", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory"}},
		spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: host}},
		spec.Volume{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "shop"}},
		claim("pgdata"),
	)
	prepare(t, s, pod)
	kept := filepath.Join(s.opts.ClaimsDir, "pgdata", "file")
	filetest.Write(t, kept, "kept")
	mountsOf(t, s, pod, "run", spec.VolumeMount{Name: "host", MountPath: "/h", SubPath: "below", MountPropagation: "Bidirectional"},
		spec.VolumeMount{Name: "data", MountPath: "/claim", SubPath: "sub"})
	mountsOf(t, s, pod, "interrupted", spec.VolumeMount{Name: "data", MountPath: "/d", SubPath: "sub"})

	disk := s.path(pod.UID, &pod.Spec.Volumes[0])
	filetest.Symlink(t, host, filepath.Join(disk, "link"))
	inside, again := filetest.Mkdir(t, filepath.Join(disk, "inside")), filetest.Mkdir(t, filepath.Join(disk, "sub", "again"))
	hidden := filetest.Mkdir(t, filepath.Join(disk, "hidden"))
	if err := errors.Join(
		unix.Mount(host, hidden, "", unix.MS_BIND|unix.MS_REC, ""),
		unix.Mount("tmpfs", hidden, "tmpfs", 0, ""),
		unix.Mount(host, inside, "", unix.MS_BIND|unix.MS_REC, ""), // in the same peer group
		unix.Mount(s.claimDir("pgdata"), again, "", unix.MS_BIND, ""),
		unix.Mount("tmpfs", again, "tmpfs", 0, ""),
		unix.Mount(host, again, "", unix.MS_BIND|unix.MS_REC, ""),
	); err != nil {
		t.Fatal(err)
	}
	other := podOf(spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}})
	other.UID = "uid-2"
	prepare(t, s, other)
	uids, err := s.UIDs(t.Context())
	if diff := cmp.Diff([]string{"uid-1", "uid-2"}, uids); diff != "" || err != nil {
		t.Errorf("UIDs: %v\n%s", err, diff)
	}
	if err := errors.Join(s.Teardown(t.Context(), pod.UID), s.Teardown(t.Context(), pod.UID)); err != nil {
		t.Error(err)
	}
	wantNoVolumes(t, s, pod.UID)
	for _, path := range []string{filepath.Join(host, "file"), filepath.Join(below, "file"), kept} {
		if filetest.Read(t, path) != "kept" {
			t.Errorf("%s was changed", path)
		}
	}
	if diff := cmp.Diff([]string{host, below}, mountsBelow(t, host)); diff != "" {
		t.Errorf("mounts of the host (-want +got):\n%s", diff)
	}
	if uids, err := s.UIDs(t.Context()); !slices.Equal(uids, []string{"uid-2"}) || err != nil {
		t.Errorf("UIDs: %v, %v", uids, err)
	}
	if err := s.Teardown(t.Context(), "uid-2"); err != nil {
		t.Error(err)
	}
}

// Remove does not delete files of a mount below the directory.
func TestRemoveStopsAtMounts(t *testing.T) {
	dir := filetest.Mkdir(t, filepath.Join(t.TempDir(), "tree"))
	other := filepath.Join(t.TempDir(), "other")
	filetest.Write(t, filepath.Join(other, "file"), "kept")
	place := filetest.Mkdir(t, filepath.Join(dir, "a", "place"))
	if err := unix.Mount(other, place, "", unix.MS_BIND, ""); err != nil { // on the same file system
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	filetest.WantError(t, RemoveTree(t.Context(), dir), "a file system is mounted in it")
	if filetest.Read(t, filepath.Join(other, "file")) != "kept" {
		t.Error("a file of the mount was removed")
	}
}

// crashDir is set in a process that works in this directory until it is killed.
const crashDir = "PODSTEAD_VOLUME_TEST_CRASH_DIR"

func crashSet(dir string) (*Set, Pod, error) {
	values := &fakeValues{
		configMaps: map[string]map[string]string{"shop": {"color": "red"}},
		secrets:    map[string]map[string]string{"db": {"password": "x"}},
	}
	s, err := New(values, Options{
		DataDir: filepath.Join(dir, "data"), RunDir: filepath.Join(dir, "run"), ClaimsDir: filepath.Join(dir, "claims"),
	})
	pod := withGroup(contentPod())
	pod.Spec.Volumes = append(pod.Spec.Volumes, claim("pgdata"),
		spec.Volume{Name: "disk", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "memory", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: quantity("1Mi")}})
	return s, pod, err
}

func crashRequest() Request {
	return Request{Run: "run", Container: &spec.Container{VolumeMounts: []spec.VolumeMount{
		{Name: "conf", MountPath: "/a", SubPath: "color"},
		{Name: "disk", MountPath: "/b", SubPath: "x/y"},
		{Name: "data", MountPath: "/c", SubPath: "z"},
		{Name: "memory", MountPath: "/d"},
	}}}
}

// workUntilKilled sets up and tears down the volumes of a pod forever.
func workUntilKilled(dir string) int {
	s, pod, err := crashSet(dir)
	for ctx := context.Background(); err == nil; {
		err = s.Prepare(ctx, pod)
		if err == nil {
			_, err = s.Mounts(ctx, pod, crashRequest())
		}
		if err == nil {
			err = errors.Join(s.Release(ctx, pod.UID, "run"), s.Teardown(ctx, pod.UID))
		}
	}
	os.Stderr.WriteString(err.Error() + "\n")
	return 1
}

// After SIGKILL at any moment, the next process completes or removes the volumes.
func TestRecoveryAfterKill(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 25 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(testTimeout); len(glob(t, filepath.Join(dir, "run", "*"))) == 0; {
			if time.Now().After(deadline) {
				t.Fatal("the process did not start")
			}
			<-time.After(time.Millisecond)
		}
		<-time.After(time.Duration(random.IntN(20000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the process exited: %v", err)
		}
		s, pod, err := crashSet(dir)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			prepare(t, s, pod)
			list, err := s.Mounts(t.Context(), pod, crashRequest())
			if err != nil {
				t.Fatal(err)
			}
			if got := filetest.Read(t, list[0].Source); got != "red" || len(mountsBelow(t, s.runDir(pod.UID))) != 5 {
				t.Errorf("after kill %d: %q, %v", i, got, mountsBelow(t, s.runDir(pod.UID)))
			}
		}
		if err := s.Teardown(t.Context(), pod.UID); err != nil {
			t.Fatalf("after kill %d: %v", i, err)
		}
		wantNoVolumes(t, s, pod.UID)
	}
	if _, err := os.Stat(filepath.Join(dir, "claims", "pgdata")); err != nil {
		t.Error(err)
	}
}
