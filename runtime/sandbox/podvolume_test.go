package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

func TestDownward(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	v := NewVolumes(nil, Host{StateDir: t.TempDir(), Cgroup: "/podstead"}, nil, 0)
	d, err := v.Downward("u", &spec.Pod{Name: "web"}, []string{"10.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if d.NodeName != host || d.UID != "u" || len(d.HostIPs) == 0 || !cmp.Equal(d.PodIPs, []string{"10.0.0.2"}) {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		if q := d.Allocatable[name]; q.Sign() <= 0 {
			t.Errorf("allocatable %s: %v, want a positive quantity", name, q)
		}
	}
	if d, err = v.Downward("u", &spec.Pod{HostNetwork: true}, nil); err != nil || !cmp.Equal(d.PodIPs, d.HostIPs) {
		t.Errorf("hostNetwork: addresses %v, %v; want those of the host", d.PodIPs, err)
	}
}

// sources provides config maps that contain their name. Reading "hung" blocks until the channel is closed, and is reported. "none" does not
// exist.
type sources struct{ reading, hung chan struct{} }

func (s sources) ConfigMap(_ *spec.Pod, name string) (map[string][]byte, error) {
	if name == "hung" {
		s.reading <- struct{}{}
		<-s.hung
	}
	if name == "none" {
		return nil, os.ErrNotExist
	}
	return map[string][]byte{"name": []byte(name)}, nil
}

func (s sources) Secret(*spec.Pod, string) (map[string][]byte, error) { return nil, os.ErrNotExist }

// configured returns a pod with a volume from a config map.
func configured(name string) *spec.Pod {
	return &spec.Pod{
		Name: "web", Volumes: []spec.Volume{{Name: "config", ConfigMap: &spec.ConfigMapVolume{Name: name}}},
		Containers: []spec.Container{{Name: "c", VolumeMounts: []spec.VolumeMount{{Name: "config", MountPath: "/config"}}}},
	}
}

// written returns volumes of the pod "u", whose volume has the content "first", and a function that reads it.
func written(t *testing.T, s sources) (v *Volumes, content func() string) {
	t.Helper()
	dir := t.TempDir()
	set, err := volume.New(s,
		volume.Options{DataDir: filepath.Join(dir, "data"), RunDir: filepath.Join(dir, "run"), ClaimsDir: filepath.Join(dir, "claims")})
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(dir, "run", "u", "files", "config")
	if err := os.MkdirAll(files, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (volume.Writer{}).Write(files, volume.Files{"name": {Content: []byte("first"), Mode: 0o644}}); err != nil {
		t.Fatal(err)
	}
	v = NewVolumes(set, Host{StateDir: dir, Cgroup: "/podstead"}, NewIndex(), time.Second)
	return v, func() string {
		text, err := os.ReadFile(filepath.Join(files, "name"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// TestUnmountedVolumes: a volume that no container mounts is not set up, and holds up nothing. It is when a container mounts it.
func TestUnmountedVolumes(t *testing.T) {
	v, _ := written(t, sources{})
	claims := filepath.Join(v.host.StateDir, "claims")
	missing := filepath.Join(claims, "missing")
	pod := &spec.Pod{
		Name: "web",
		Volumes: []spec.Volume{
			{Name: "secret", Secret: &spec.SecretVolume{SecretName: "missing"}},
			{Name: "host", HostPath: &spec.HostPathVolume{Path: missing, Type: spec.HostPathDirectory}},
			{Name: "claim", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "unused"}},
		},
		Containers: []spec.Container{{Name: "c"}},
	}
	if err := v.PreparePod(t.Context(), "u", pod); err != nil {
		t.Errorf("a pod whose containers mount no volume: %v", err)
	}
	if list, err := os.ReadDir(claims); err != nil || len(list) != 0 {
		t.Errorf("claims of volumes that are not mounted: %v, %v", list, err)
	}
	pod.Containers = append(pod.Containers, spec.Container{Name: "d", VolumeMounts: []spec.VolumeMount{{Name: "claim", MountPath: "/c"}}})
	if err := v.PrepareContainer(t.Context(), "u", pod, &pod.Containers[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(claims, "unused")); err != nil {
		t.Errorf("a volume that a new container mounts: %v", err)
	}
	pod.Containers[0].VolumeMounts = []spec.VolumeMount{{Name: "host", MountPath: "/h"}}
	const want = `volume "host": hostPath type check failed`
	err := v.PreparePod(t.Context(), "u", pod)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a mounted volume: %v, want %s", err, want)
	}
}

// TestRefreshIsNotReverted: later updates use the definition of the last refresh, although the sandbox has an older one.
func TestRefreshIsNotReverted(t *testing.T) {
	v, content := written(t, sources{})
	v.index.Put("u", configured("old"), 1)
	if err := v.Refresh(t.Context(), "u", configured("new")); err != nil || content() != "new" {
		t.Fatalf("after a refresh: %q, %v", content(), err)
	}
	if err := v.update(t.Context(), "u", time.Minute); err != nil || content() != "new" {
		t.Errorf("after an update: %q, %v", content(), err)
	}
}

// TestRefreshDuringAnUpdate: a refresh waits for an update with the old definition, and writes the new one.
func TestRefreshDuringAnUpdate(t *testing.T) {
	s := sources{make(chan struct{}), make(chan struct{})}
	v, content := written(t, s)
	v.index.Put("u", configured("hung"), 1)
	updated := make(chan error, 1)
	go func() { updated <- v.update(t.Context(), "u", time.Minute) }()
	<-s.reading
	refreshed := make(chan error, 1)
	go func() { refreshed <- v.Refresh(t.Context(), "u", configured("new")) }()
	close(s.hung)
	if err := <-updated; err != nil {
		t.Error(err)
	}
	if err := <-refreshed; err != nil || content() != "new" {
		t.Errorf("after both: %q, %v", content(), err)
	}
}

// TestWatch: an update that fails is reported once it has failed twice, and then each change; a pod that is new to its watcher is reported
// at once.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := written(t, sources{})
		v.index.Put("u", configured("first"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		watch := func() {
			go func() { _ = v.Watch(ctx, "u", func(stale string) { got = append(got, stale) }) }()
			synctest.Wait()
		}
		watch()
		go v.Run(ctx)
		pass := func() {
			time.Sleep(v.interval)
			synctest.Wait()
		}
		pass()
		const missing = `volume "config": configmap "none" not found`
		for _, step := range []struct {
			source string
			passes int
			want   []string
		}{
			{"first", 1, []string{""}},
			{"none", 1, []string{""}}, // files that are replaced one after the other
			{"first", 1, []string{""}},
			{"none", 5, []string{"", missing}},
			{"first", 2, []string{"", missing, ""}},
		} {
			v.index.Put("u", configured(step.source), 1)
			for range step.passes {
				pass()
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%d updates from %s: reports (-want +got):\n%s", step.passes, step.source, diff)
			}
		}
		v.index.Put("u", configured("none"), 1)
		pass()
		pass()
		got = nil
		watch()
		if !cmp.Equal(got, []string{missing}) {
			t.Errorf("a new watcher was told %q", got)
		}
	})
}

// TestRefreshWithHungSource: the volume keeps its content, other operations on the pod do not wait for the source, and content that arrives
// late is not written.
func TestRefreshWithHungSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sources{make(chan struct{}, 1), make(chan struct{})}
		v, content := written(t, s)
		v.index.Put("u", configured("old"), 1)
		begun := time.Now()
		if err := v.Refresh(t.Context(), "u", configured("hung")); err != nil || time.Since(begun) != refreshTimeout {
			t.Errorf("refresh: %v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := v.Release(ctx, "u", "run"); err != nil {
			t.Errorf("another operation: %v", err)
		}
		close(s.hung)
		synctest.Wait()
		if content() != "first" {
			t.Errorf("content that arrived late was written: %q", content())
		}
	})
}
