//go:build e2e

package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

const group = 4711

func withGroup(pod Pod) Pod {
	pod.Spec.SecurityContext = &spec.PodSecurityContext{FSGroup: new(int64(group))}
	return pod
}

func TestMemoryEmptyDir(t *testing.T) {
	s := newSet(t, nil)
	volume := spec.Volume{Name: "cache", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: quantity("1Mi")}}
	pod := podOf(volume)
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	dir := s.path(pod.UID, &volume)
	if got := filetest.Stat(t, dir); got.Mode != unix.S_IFDIR|0o777 || got.Gid != 0 || fileSystem(t, dir) != unix.TMPFS_MAGIC {
		t.Errorf("mode %o, group %d, file system %x", got.Mode, got.Gid, fileSystem(t, dir))
	}
	filetest.Write(t, filepath.Join(dir, "small"), "kept")
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write of 2 MiB to a volume of 1 MiB: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, s, pod)
	if filetest.Read(t, filepath.Join(dir, "small")) != "kept" || filetest.Stat(t, dir).Mode != unix.S_IFDIR|0o700 ||
		len(mountsBelow(t, dir)) != 1 {
		t.Error("a second Prepare changed the volume")
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // as after a reboot
		t.Fatal(err)
	}
	prepare(t, s, withGroup(pod))
	if got := filetest.Stat(t, dir); got.Mode != unix.S_IFDIR|unix.S_ISGID|0o777 || got.Gid != group {
		t.Errorf("with fsGroup after a reboot: mode %o, group %d", got.Mode, got.Gid)
	}
	if list, err := s.Usage(t.Context(), pod); err != nil || len(list) != 0 {
		t.Errorf("usage of an emptyDir in memory: %v, %v", list, err)
	}
}

// TestEmptyDirMode: a new directory of an emptyDir has its mode, as that of one in memory is after a reboot. Other changes stay.
func TestEmptyDirMode(t *testing.T) {
	s := newSet(t, nil)
	mode := int32(0o1750)
	memory := spec.Volume{Name: "cache", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: quantity("1Mi"), Mode: &mode}}
	disk := spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{Mode: &mode}}
	pod := podOf(memory, disk)
	clean(t, s, pod.UID)
	want := func(when string, want uint32) {
		t.Helper()
		prepare(t, s, pod)
		for _, v := range []*spec.Volume{&memory, &disk} {
			if got := filetest.Stat(t, s.path(pod.UID, v)).Mode; got != unix.S_IFDIR|want {
				t.Errorf("%s of a pod %s: mode %o, want %o", v.Name, when, got, want)
			}
		}
	}
	want("that is new", 0o1750)
	for _, v := range []*spec.Volume{&memory, &disk} {
		if err := os.Chmod(s.path(pod.UID, v), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	want("whose container has changed it", 0o700)
	if err := unix.Unmount(s.path(pod.UID, &memory), unix.MNT_DETACH); err != nil { // as after a reboot
		t.Fatal(err)
	}
	if err := os.Remove(s.path(pod.UID, &disk)); err != nil {
		t.Fatal(err)
	}
	want("whose directories are new", 0o1750)
}

// TestEmptyDirFollows checks that an emptyDir follows a changed definition of its pod, and that its files stay.
func TestEmptyDirFollows(t *testing.T) {
	s := newSet(t, nil)
	memory := spec.Volume{Name: "cache", EmptyDir: &spec.EmptyDirVolume{Medium: "Memory", SizeLimit: quantity("1Mi")}}
	disk := spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}}
	clean(t, s, podOf().UID)
	prepare(t, s, withGroup(podOf(memory, disk)))
	files := map[string]string{}
	for _, v := range []*spec.Volume{&memory, &disk} {
		files[v.Name] = filepath.Join(s.path(podOf().UID, v), "file")
		filetest.Write(t, files[v.Name], "kept")
		if err := os.Chown(files[v.Name], 0, 0); err != nil { // by a container
			t.Fatal(err)
		}
	}
	prepare(t, s, withGroup(podOf(memory, disk)))
	for name, file := range files {
		if got := filetest.Stat(t, file); got.Gid != 0 {
			t.Errorf("%s: group %d with the same fsGroup", name, got.Gid)
		}
	}
	memory.EmptyDir.SizeLimit = quantity("2Mi")
	pod := withGroup(podOf(memory, disk))
	pod.Spec.SecurityContext.FSGroup = new(int64(group + 1))
	prepare(t, s, pod)
	for name, file := range files {
		if got := filetest.Stat(t, file); got.Gid != group+1 || filetest.Read(t, file) != "kept" {
			t.Errorf("%s: group %d with another fsGroup", name, got.Gid)
		}
	}
	large := filepath.Join(filepath.Dir(files["cache"]), "large")
	if err := os.WriteFile(large, make([]byte, 3<<19), 0o600); err != nil {
		t.Errorf("write of 1.5 MiB to a volume of 2 MiB: %v", err)
	}
	for i := range 300 { // a volume of 1 MiB has fewer
		filetest.Write(t, filepath.Join(filepath.Dir(large), strconv.Itoa(i)), "")
	}
	if err := os.Remove(large); err != nil {
		t.Fatal(err)
	}
	memory.EmptyDir.SizeLimit = quantity("1Mi")
	prepare(t, s, podOf(memory, disk)) // its files stay, also when they are more than a new volume could have
	var limits unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(large), &limits); err != nil || limits.Ffree != 0 {
		t.Errorf("%d more files fit (%v), want 0", limits.Ffree, err)
	}
	memory.EmptyDir.SizeLimit = quantity("2Mi")
	prepare(t, s, podOf(memory, disk))
	if err := os.WriteFile(large, make([]byte, 3<<19), 0o600); err != nil {
		t.Error(err)
	}
	if err := s.CheckMemory(t.Context(), podOf(memory, disk)); err != nil {
		t.Errorf("the present size: %v", err)
	}
	memory.EmptyDir.SizeLimit = quantity("1Mi")
	if err := s.CheckMemory(t.Context(), podOf(memory, disk)); err == nil || !strings.Contains(err.Error(), "its new size is 1048576") {
		t.Errorf("check of a size below that of the files: %v", err)
	}
	if err := unix.Statfs(filepath.Dir(large), &limits); err != nil || limits.Blocks*uint64(limits.Bsize) != 2<<20 {
		t.Errorf("size after a check: %d blocks (%v)", limits.Blocks, err)
	}
	if err := s.Prepare(t.Context(), podOf(memory, disk)); err == nil || !strings.Contains(err.Error(), "its new size is 1048576") {
		t.Errorf("a size below that of the files: %v", err)
	}
}

// An option that the kernel does not support is left out.
func TestMountTmpfs(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := mountTmpfs(dir, unix.MS_NODEV, "size=64k,mode=0711", "no-such-option"); err != nil {
		t.Fatal(err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Blocks*uint64(s.Bsize) != 64<<10 || filetest.Stat(t, dir).Mode != unix.S_IFDIR|0o711 {
		t.Errorf("%d blocks of %d, mode %o: %v", s.Blocks, s.Bsize, filetest.Stat(t, dir).Mode, err)
	}
	filetest.WantError(t, mountTmpfs(t.TempDir(), 0, "size=many", "noswap"), "invalid argument")
	filetest.WantError(t, mountTmpfs(filepath.Join(dir, "none"), 0, "size=1m", "noswap"), "no such file")
}

func contentPod() Pod {
	return podOf(
		spec.Volume{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "shop"}},
		spec.Volume{Name: "db", Secret: &spec.SecretVolume{SecretName: "db", DefaultMode: new(int32(0o400))}},
		spec.Volume{Name: "info", DownwardAPI: &spec.DownwardAPIVolume{Items: []spec.DownwardFile{
			{Path: "name", FieldRef: &spec.FieldRef{FieldPath: "metadata.name"}},
		}}},
		spec.Volume{Name: "all", Projected: &spec.ProjectedVolume{Sources: []spec.Projection{
			{ConfigMap: &spec.KeyProjection{Name: "shop"}}, {Secret: &spec.KeyProjection{Name: "db"}},
		}}},
	)
}

func TestContent(t *testing.T) {
	values := &fakeValues{
		configMaps: map[string]map[string]string{"shop": {"color": "red"}},
		secrets:    map[string]map[string]string{},
	}
	s := newSet(t, values)
	pod := withGroup(contentPod())
	clean(t, s, pod.UID)
	want := `volume "db": secret "db" not found; volume "all": secret "db" not found`
	if err := s.Prepare(t.Context(), pod); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := s.Prepare(t.Context(), pod); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
	values.set(func() { values.secrets["db"] = map[string]string{"password": "old"} })
	prepare(t, s, pod)
	dir := s.filesDir(pod.UID)
	if fileSystem(t, filepath.Join(dir, "db")) != unix.TMPFS_MAGIC {
		t.Error("the secret is not on a tmpfs")
	}
	for path, want := range map[string]uint32{
		s.runDir(pod.UID): 0o700, dir: 0o700, dir + "/db": unix.S_ISGID | 0o755, dir + "/db/..data/password": 0o440,
		dir + "/conf/..data/color": 0o644,
	} {
		if got := filetest.Stat(t, path); got.Mode&^unix.S_IFMT != want || got.Uid != 0 {
			t.Errorf("%s: mode %o, owner %d, want %o", path, got.Mode&^unix.S_IFMT, got.Uid, want)
		}
	}
	if got := filetest.Stat(t, dir+"/db/..data/password").Gid; got != group {
		t.Errorf("group of the secret: %d", got)
	}
	check := func(step string, color, password string) {
		t.Helper()
		for path, want := range map[string]string{
			"conf/color": color, "all/color": color, "db/password": password, "all/password": password, "info/name": "field metadata.name",
		} {
			if got := filetest.Read(t, filepath.Join(dir, path)); got != want {
				t.Errorf("%s: %s is %q, want %q", step, path, got, want)
			}
		}
	}
	update := func(step string, wantChange bool, want string) {
		t.Helper()
		changed, err := s.Update(t.Context(), pod.UID, func() (Pod, error) { return pod, nil })
		if changed != wantChange {
			t.Errorf("%s: changed %v: %v", step, changed, err)
		}
		filetest.WantError(t, err, want)
	}
	check("first", "red", "old")
	update("nothing", false, "")
	values.set(func() { values.configMaps["shop"] = map[string]string{"color": "blue"} })
	update("config map", true, "")
	check("config map", "blue", "old")
	values.set(func() {
		values.configMaps["shop"] = map[string]string{"color": "green"}
		delete(values.secrets, "db")
	})
	update("a missing source", true, `volume "db": secret "db" not found; volume "all": secret "db" not found`)
	if got := filetest.Read(t, dir+"/conf/color") + filetest.Read(t, dir+"/all/color") +
		filetest.Read(t, dir+"/db/password"); got != "greenblueold" {
		t.Errorf("a missing source: %s", got)
	}
	prepare(t, s, pod) // as for a restart of a container
	_ = unix.Unmount(dir, unix.MNT_DETACH)
	update("after a reboot", false, "")
	filetest.WantError(t, s.Prepare(t.Context(), pod), `volume "db": secret "db" not found`)
}

func TestSubPath(t *testing.T) {
	values := &fakeValues{configMaps: map[string]map[string]string{"shop": {"color": "red"}}}
	s := newSet(t, values)
	pod := podOf(
		spec.Volume{Name: "conf", ConfigMap: &spec.ConfigMapVolume{Name: "shop"}},
		spec.Volume{Name: "data", EmptyDir: &spec.EmptyDirVolume{}},
	)
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	mounts := []spec.VolumeMount{
		{Name: "conf", MountPath: "/color", SubPath: "color"},
		{Name: "data", MountPath: "/data", SubPath: "users/$(NAME)"},
		{Name: "conf", MountPath: "/conf"},
		{Name: "data", MountPath: "/log", SubPathExpr: "log/$(NAME)"},
	}
	request := Request{
		Run: "run", Variables: map[string]string{"NAME": "web"}, Container: &spec.Container{Name: "app", VolumeMounts: mounts},
	}
	for range 2 { // repeated as after a crash
		list, err := s.Mounts(t.Context(), pod, request)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range list {
			got = append(got, m.Destination+" "+m.Source)
		}
		run := filepath.Join(s.subPathsDir(pod.UID), "run")
		want := []string{
			"/color " + run + "/0", "/data " + run + "/1", "/conf " + s.filesDir(pod.UID) + "/conf", "/log " + run + "/3",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff([]string{run + "/0", run + "/1", run + "/3"}, mountsBelow(t, run)); diff != "" {
			t.Error(diff)
		}
	}
	run := filepath.Join(s.subPathsDir(pod.UID), "run")
	disk := s.path(pod.UID, &pod.Spec.Volumes[1])
	filetest.Write(t, filepath.Join(run, "3", "file"), "logged")
	if filetest.Read(t, filepath.Join(disk, "log", "web", "file")) != "logged" ||
		filetest.Stat(t, filepath.Join(disk, "log", "web")).Mode != unix.S_IFDIR|0o777 {
		t.Error("the subPath is missing in the volume, or has another mode")
	}
	if _, err := os.Stat(filepath.Join(disk, "users", "$(NAME)")); err != nil {
		t.Errorf("subPath was expanded: %v", err)
	}
	values.set(func() { values.configMaps["shop"] = map[string]string{"color": "blue"} })
	if changed, err := s.Update(t.Context(), pod.UID, func() (Pod, error) { return pod, nil }); !changed || err != nil {
		t.Errorf("update: %v, %v", changed, err)
	}
	if got := filetest.Read(t, filepath.Join(run, "0")) + " " +
		filetest.Read(t, filepath.Join(s.filesDir(pod.UID), "conf", "color")); got != "red blue" {
		t.Errorf("subPath and volume after an update: %s", got)
	}
	mountsOf(t, s, pod, "other", spec.VolumeMount{Name: "data", MountPath: "/data", SubPath: "other"})
	for range 2 {
		if err := s.Release(t.Context(), pod.UID, "run"); err != nil {
			t.Error(err)
		}
	}
	if list := mountsBelow(t, s.subPathsDir(pod.UID)); len(list) != 1 || len(glob(t, run)) > 0 {
		t.Errorf("after Release: %v", list)
	}
	// An error leaves no mounts.
	filetest.Symlink(t, "/etc", filepath.Join(disk, "escape"))
	request.Run = "fails"
	request.Container.VolumeMounts = append(mounts, spec.VolumeMount{Name: "data", MountPath: "/etc2", SubPath: "escape/x"})
	_, err := s.Mounts(t.Context(), pod, request)
	filetest.WantError(t, err,
		`volume "data": failed to prepare subPath for volumeMount "data" of container "app": subpath "escape/x" not within volume path`)
	if list := mountsBelow(t, s.subPathsDir(pod.UID)); len(list) != 1 {
		t.Errorf("after an error: %v", list)
	}
}

func TestDevices(t *testing.T) {
	s := newSet(t, nil)
	block := filepath.Join(t.TempDir(), "block")
	if err := unix.Mknod(block, unix.S_IFBLK|0o600, int(unix.Mkdev(240, 0))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind spec.HostPathType
		want string
	}{
		{spec.HostPathBlockDevice, ""}, {spec.HostPathCharDevice, block + " is not a character device"},
	} {
		pod := podOf(spec.Volume{Name: "v", HostPath: &spec.HostPathVolume{Path: block, Type: test.kind}})
		filetest.WantError(t, s.Prepare(t.Context(), pod), test.want)
	}
}

// The group of a claim is changed once for each pod. Targets of links and mounts in the claim are not changed.
func TestClaimFSGroup(t *testing.T) {
	s := newSet(t, nil)
	dir := filepath.Join(s.opts.ClaimsDir, "pgdata")
	outside := filepath.Join(t.TempDir(), "outside")
	filetest.Write(t, outside, "")
	prepare(t, s, podOf(claim("pgdata")))
	filetest.Write(t, filepath.Join(dir, "deep", "file"), "")
	filetest.Symlink(t, outside, filepath.Join(dir, "link"))
	mounted := tmpfsAt(t, filepath.Join(dir, "mounted"), unix.MS_PRIVATE)
	filetest.Write(t, filepath.Join(mounted, "file"), "")
	groups := func() (file, link, linked, mount uint32) {
		return filetest.Stat(t, filepath.Join(dir, "deep", "file")).Gid, filetest.Stat(t, filepath.Join(dir, "link")).Gid,
			filetest.Stat(t, outside).Gid, filetest.Stat(t, filepath.Join(mounted, "file")).Gid
	}
	readOnly := withGroup(podOf(claim("pgdata")))
	readOnly.UID = "uid-read-only"
	readOnly.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	clean(t, s, readOnly.UID)
	prepare(t, s, readOnly)
	if file, _, _, _ := groups(); file != 0 {
		t.Errorf("group of a read-only claim changed to %d", file)
	}
	pod := withGroup(podOf(claim("pgdata")))
	clean(t, s, pod.UID)
	prepare(t, s, pod)
	if file, link, linked, mount := groups(); file != group || link != group || linked != 0 || mount != 0 {
		t.Errorf("groups: file %d, link %d, target %d, mount %d", file, link, linked, mount)
	}
	if err := os.Chown(filepath.Join(dir, "deep", "file"), 1, 1); err != nil {
		t.Fatal(err)
	}
	prepare(t, s, pod)
	if file, _, _, _ := groups(); file != 1 {
		t.Error("a second Prepare changed the group")
	}
	other := withGroup(podOf(claim("pgdata")))
	other.UID = "uid-other"
	other.Spec.SecurityContext.FSGroupChangePolicy = "OnRootMismatch"
	clean(t, s, other.UID)
	prepare(t, s, other)
	if file, _, _, _ := groups(); file != 1 {
		t.Error("OnRootMismatch changed the group although the root matched")
	}
	fresh := withGroup(podOf(claim("fresh")))
	fresh.UID = "uid-fresh"
	clean(t, s, fresh.UID)
	prepare(t, s, fresh)
	if got := filetest.Stat(t, filepath.Join(s.opts.ClaimsDir, "fresh")); got.Mode != unix.S_IFDIR|unix.S_ISGID|0o777 || got.Gid != group {
		t.Errorf("a new claim: mode %o, group %d", got.Mode, got.Gid)
	}
}

// A claim with a mount in it is not removed, not even partly.
func TestRemoveMountedClaim(t *testing.T) {
	s := newSet(t, nil)
	for _, place := range []string{"disk", "pgdata/mounted"} {
		mounted := tmpfsAt(t, filepath.Join(s.opts.ClaimsDir, place), unix.MS_PRIVATE)
		filetest.Write(t, filepath.Join(mounted, "file"), "kept")
		name, _, _ := strings.Cut(place, "/")
		filetest.WantError(t, s.RemoveClaim(t.Context(), name), mounted+" is a mount point")
		if filetest.Read(t, filepath.Join(mounted, "file")) != "kept" {
			t.Error("a file of the mount was removed")
		}
	}
}

// If a volume does not fit, its old files stay, and temporary files are removed.
func TestNoSpace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	filetest.Mkdir(t, dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	volume := filepath.Join(dir, "conf")
	for _, step := range []struct {
		bytes int
		want  error
	}{{10, nil}, {300 << 10, unix.ENOSPC}, {100 << 10, nil}, {300 << 10, unix.ENOSPC}, {110 << 10, nil}, {100 << 10, nil}} {
		filetest.Write(t, filepath.Join(volume, "..2026_01_01_00_00_00.crash", "a"), strings.Repeat("x", 40<<10))
		before, _ := os.ReadFile(filepath.Join(volume, "a"))
		text := strings.Repeat("x", step.bytes)
		if _, err := (Writer{}).Write(volume, Files{"a": {Content: []byte(text), Mode: 0o644}}); !errors.Is(err, step.want) {
			t.Errorf("%d bytes: %v", step.bytes, err)
		}
		if step.want != nil {
			text = string(before)
		}
		if got := filetest.Read(t, filepath.Join(volume, "a")); got != text {
			t.Errorf("after writing %d bytes: file size %d, want %d", step.bytes, len(got), len(text))
		}
		if hidden := glob(t, filepath.Join(volume, "..*")); len(hidden) != 2 {
			t.Errorf("unexpected files: %v", hidden)
		}
	}
}

// TestImageDefinedFull: what the image has at the path of a volume is not copied if it does not fit on the disk.
func TestImageDefinedFull(t *testing.T) {
	s := newSet(t, nil)
	dir, root := filepath.Join(s.diskDir("u"), imageDefinedName("run", 0)), t.TempDir()
	if err := ensureTmpfs(dir, 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	filetest.Write(t, filepath.Join(root, "data", "file"), strings.Repeat("x", 1<<20))
	filetest.WantError(t, s.FillImageDefined(t.Context(), "u", "run", root, []string{"/data"}), "only 65536 bytes are free")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("copied: %v, %v", entries, err)
	}
}
