package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/volume/filetest"
	"github.com/podstead/podstead/spec"
)

// Mounts have the options of containerd's CRI plug-in.
func TestOptions(t *testing.T) {
	disk := spec.Volume{EmptyDir: &spec.EmptyDirVolume{}}
	readOnlyClaim := claim("c")
	readOnlyClaim.PersistentVolumeClaim.ReadOnly = true
	tests := []struct {
		name   string
		volume spec.Volume
		mount  spec.VolumeMount
		old    bool // the kernel does not support recursive read-only mounts
		want   []string
		err    string
	}{
		{"default", disk, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "rw"}, ""},
		{
			"none", disk,
			spec.VolumeMount{MountPropagation: "None", RecursiveReadOnly: "Disabled"},
			false,
			[]string{"rbind", "rprivate", "rw"},
			"",
		},
		{"read-only", disk, spec.VolumeMount{ReadOnly: true}, false, []string{"rbind", "rprivate", "ro"}, ""},
		{
			"slave", disk,
			spec.VolumeMount{MountPropagation: "HostToContainer", ReadOnly: true},
			false,
			[]string{"rbind", "rslave", "ro"},
			"",
		},
		{"shared", disk, spec.VolumeMount{MountPropagation: "Bidirectional"}, false, []string{"rbind", "rshared", "rw"}, ""},
		{"rro", disk, spec.VolumeMount{ReadOnly: true, RecursiveReadOnly: "Enabled"}, false, []string{"rbind", "rprivate", "rro"}, ""},
		{
			"rro if possible", disk,
			spec.VolumeMount{ReadOnly: true, RecursiveReadOnly: "IfPossible"},
			false,
			[]string{"rbind", "rprivate", "rro"},
			"",
		},
		{
			"rro if possible, not supported", disk,
			spec.VolumeMount{ReadOnly: true, RecursiveReadOnly: "IfPossible"},
			true,
			[]string{"rbind", "rprivate", "ro"},
			"",
		},
		{
			"rro not supported", disk,
			spec.VolumeMount{ReadOnly: true, RecursiveReadOnly: "Enabled"},
			true, nil,
			"but it is not supported by the runtime",
		},
		{"rro without readOnly", disk, spec.VolumeMount{RecursiveReadOnly: "Enabled"}, false, nil, "but it is not read-only"},
		{
			"rro with propagation", disk,
			spec.VolumeMount{ReadOnly: true, RecursiveReadOnly: "IfPossible", MountPropagation: "HostToContainer"},
			false, nil, `but it is not compatible with propagation "HostToContainer"`,
		},
		{"config map", spec.Volume{ConfigMap: &spec.ConfigMapVolume{}}, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "ro"}, ""},
		{"secret", spec.Volume{Secret: &spec.SecretVolume{}}, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "ro"}, ""},
		{"projected", spec.Volume{Projected: &spec.ProjectedVolume{}}, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "ro"}, ""},
		{
			"downward API",
			spec.Volume{DownwardAPI: &spec.DownwardAPIVolume{}},
			spec.VolumeMount{},
			false,
			[]string{"rbind", "rprivate", "ro"},
			"",
		},
		{"image", spec.Volume{Image: &spec.ImageVolume{}}, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "ro", "noexec"}, ""},
		{"claim", claim("c"), spec.VolumeMount{}, false, []string{"rbind", "rprivate", "rw"}, ""},
		{"read-only claim", readOnlyClaim, spec.VolumeMount{}, false, []string{"rbind", "rprivate", "ro"}, ""},
		{"unknown propagation", disk, spec.VolumeMount{MountPropagation: "x"}, false, nil, `mount propagation "x" is not supported`},
		{"unknown mode", disk, spec.VolumeMount{RecursiveReadOnly: "x"}, false, nil, `recursive read-only mode "x" is not supported`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &Request{RecursiveReadOnly: !test.old}
			got, err := r.options(&test.volume, &test.mount)
			filetest.WantError(t, err, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoSetuid tests for which volumes programs do not change the user: those that pods with other users as root may share.
func TestNoSetuid(t *testing.T) {
	host := spec.Volume{HostPath: &spec.HostPathVolume{}}
	for _, test := range []struct {
		name           string
		volume         spec.Volume
		kept, rootless bool
		want           bool
	}{
		{"claim, keepID", claim("c"), true, true, true},
		{"claim without keepID", claim("c"), false, true, true},
		{"claim of root", claim("c"), false, false, false},
		{"host path, keepID", host, true, true, true},
		{"host path without keepID", host, false, true, false},
		{"host path of root", host, false, false, false},
		{"emptyDir, keepID", spec.Volume{EmptyDir: &spec.EmptyDirVolume{}}, true, true, true},
		{"emptyDir without keepID", spec.Volume{EmptyDir: &spec.EmptyDirVolume{}}, false, true, false},
	} {
		pod := &spec.Pod{}
		if test.kept {
			pod.KeepID = new(int64(1000))
		}
		s := &Set{opts: Options{Rootless: test.rootless}}
		if got := s.isNoSetuid(pod, &test.volume); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := (&Request{}).noSetuid(); got != "nosuid" {
		t.Errorf("without recursive options: %q", got)
	}
	if got := (&Request{RecursiveReadOnly: true}).noSetuid(); got != "rnosuid" {
		t.Errorf("with recursive options: %q", got)
	}
}

func TestRootPropagation(t *testing.T) {
	m := func(option string) specs.Mount { return specs.Mount{Options: []string{"rbind", option, "rw"}} }
	for _, test := range []struct {
		mounts []specs.Mount
		want   string
	}{
		{nil, ""},
		{[]specs.Mount{m("rprivate")}, ""},
		{[]specs.Mount{m("rprivate"), m("rslave")}, "rslave"},
		{[]specs.Mount{m("rshared"), m("rslave")}, "rshared"},
		{[]specs.Mount{m("rslave"), m("rshared"), m("rprivate")}, "rshared"},
	} {
		if got := RootPropagation(test.mounts); got != test.want {
			t.Errorf("%v: %q, want %q", test.mounts, got, test.want)
		}
	}
}

// Volumes without subPath are mounted directly, in the order of the volumeMounts. For host paths this needs a privileged container.
func TestMounts(t *testing.T) {
	s := newSet(t, nil)
	host, image := filetest.Mkdir(t, filepath.Join(t.TempDir(), "host")), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	filetest.Symlink(t, host, link)
	pod := podOf(
		spec.Volume{Name: "disk", EmptyDir: &spec.EmptyDirVolume{}},
		spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: link, Type: spec.HostPathDirectory}},
		spec.Volume{Name: "created", HostPath: &spec.HostPathVolume{Path: filepath.Join(host, "created", "deep")}},
		spec.Volume{Name: "image", Image: &spec.ImageVolume{Reference: "tools"}},
		claim("pgdata"),
	)
	if err := s.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTree(t.Context(), filepath.Join(host, "created")); err != nil { // it is created again for each container
		t.Fatal(err)
	}
	privileged := &spec.SecurityContext{Privileged: new(true)}
	request := Request{
		Run: "run", Images: map[string]string{"image": image},
		Container: &spec.Container{Name: "app", SecurityContext: privileged, VolumeMounts: []spec.VolumeMount{
			{Name: "image", MountPath: "/image"},
			{Name: "disk", MountPath: "/z/../disk"},
			{Name: "host", MountPath: "/host", ReadOnly: true},
			{Name: "created", MountPath: "/created"},
			{Name: "data", MountPath: "/data"},
			{Name: "disk", MountPath: "/again"},
		}},
	}
	got, err := s.Mounts(t.Context(), pod, request)
	if err != nil {
		t.Fatal(err)
	}
	bind := func(to, from string, options ...string) specs.Mount {
		return specs.Mount{Destination: to, Type: "bind", Source: from, Options: append([]string{"rbind", "rprivate"}, options...)}
	}
	disk := s.path(pod.UID, &pod.Spec.Volumes[0])
	want := []specs.Mount{
		bind("/image", image, "ro", "noexec"), bind("/disk", disk, "rw"), bind("/host", host, "ro"),
		bind("/created", filepath.Join(host, "created", "deep"), "rw"), bind("/data", filepath.Join(s.opts.ClaimsDir, "pgdata"), "rw"),
		bind("/again", disk, "rw"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		mount spec.VolumeMount
		err   string
	}{
		"no such volume": {spec.VolumeMount{Name: "none"}, `volume "none": not found in the pod`},
		"missing value":  {spec.VolumeMount{Name: "disk", SubPathExpr: "$(NONE)"}, `volume "disk": missing value for NONE`},
		"image subPath": {
			spec.VolumeMount{Name: "image", SubPath: "none"}, `failed to prepare subPath for volumeMount "image" of container "app": `,
		},
	} {
		request.Container = &spec.Container{Name: "app", VolumeMounts: []spec.VolumeMount{test.mount}}
		_, err := s.Mounts(t.Context(), pod, request)
		t.Logf("%s: %v", name, err)
		filetest.WantError(t, err, test.err)
	}
	request.Images = nil
	request.Container = &spec.Container{VolumeMounts: []spec.VolumeMount{{Name: "image"}}}
	_, err = s.Mounts(t.Context(), pod, request)
	filetest.WantError(t, err, `volume "image": image "tools" is not mounted`)
	if err := errors.Join(s.Release(t.Context(), pod.UID, "run"), s.Release(t.Context(), pod.UID, "never")); err != nil {
		t.Error(err)
	}
}

// TestMountsExisting: with Existing, no directory of the host and no subPath is created, whether host paths are confined or not.
func TestMountsExisting(t *testing.T) {
	host := t.TempDir()
	for _, allowed := range [][]string{nil, {host}} {
		s := newSet(t, nil)
		s.opts.HostPaths = allowed
		pod := podOf(
			spec.Volume{Name: "disk", EmptyDir: &spec.EmptyDirVolume{}},
			spec.Volume{Name: "host", HostPath: &spec.HostPathVolume{Path: filepath.Join(host, "none", "deep")}},
		)
		if err := s.Prepare(t.Context(), pod); err != nil { // creates both
			t.Fatal(err)
		}
		if err := RemoveTree(t.Context(), filepath.Join(host, "none")); err != nil {
			t.Fatal(err)
		}
		for _, mount := range []spec.VolumeMount{{Name: "host", MountPath: "/a"}, {Name: "disk", MountPath: "/a", SubPath: "none"}} {
			request := Request{Run: "run", Existing: true, Container: &spec.Container{
				Name: "app", VolumeMounts: []spec.VolumeMount{mount}, SecurityContext: &spec.SecurityContext{Privileged: new(true)},
			}}
			_, err := s.Mounts(t.Context(), pod, request)
			filetest.WantError(t, err, "no such file or directory")
		}
		for _, path := range []string{filepath.Join(host, "none"), filepath.Join(s.path(pod.UID, &pod.Spec.Volumes[0]), "none")} {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("allowed %q: %s was created: %v", allowed, path, err)
			}
		}
	}
}
