package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	core "github.com/containerd/containerd/v2/core/sandbox"
	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
)

// TestWithoutCgroup tests that the newest sandbox of a pod decides whether the pod has a cgroup, whatever the order of the records is.
func TestWithoutCgroup(t *testing.T) {
	of := func(uid string, number int, cgroup string) core.Sandbox {
		return core.Sandbox{Labels: map[string]string{
			record.LabelUID: uid, record.LabelSandbox: strconv.Itoa(number), record.LabelCgroup: cgroup,
		}}
	}
	got := WithoutCgroup([]core.Sandbox{
		of("with", 1, "true"), of("without", 1, ""),
		of("was without", 1, ""), of("was without", 10, "true"), of("was without", 9, ""),
		of("was with", 2, ""), of("was with", 1, "true"),
		of("", 1, ""),
		{Labels: map[string]string{record.LabelUID: "damaged"}},
		{},
	})
	if diff := cmp.Diff([]string{"was with", "without"}, got); diff != "" {
		t.Errorf("pods without cgroups (-want +got):\n%s", diff)
	}
}

func TestNamespaces(t *testing.T) {
	sysctls := []spec.Sysctl{{Name: "kernel.msgmax", Value: "1"}}
	for _, test := range []struct {
		name string
		pod  spec.Pod
		want namespace.Options
	}{
		{"default", spec.Pod{Name: "web"}, namespace.Options{Network: true, Hostname: "web"}},
		{"hostNetwork", spec.Pod{Name: "web", HostNetwork: true}, namespace.Options{}},
		{"hostIPC", spec.Pod{Name: "web", HostIPC: true}, namespace.Options{Network: true, Hostname: "web", HostIPC: true}},
		{
			"shareProcessNamespace",
			spec.Pod{Name: "web", ShareProcessNamespace: true},
			namespace.Options{Network: true, Hostname: "web", PID: true},
		},
		{
			"sysctls",
			spec.Pod{Name: "web", SecurityContext: &spec.PodSecurityContext{Sysctls: sysctls}},
			namespace.Options{Network: true, Hostname: "web", Sysctls: sysctls},
		},
	} {
		if diff := cmp.Diff(test.want, Namespaces(&test.pod, namespace.IDRange{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestRemoveDir(t *testing.T) {
	pod := filepath.Join(t.TempDir(), "u")
	for _, sandbox := range []string{"1", "2"} {
		if err := os.MkdirAll(filepath.Join(pod, sandbox), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		sandbox string
		last    bool
	}{{"1", false}, {"2", true}, {"2", true}} {
		if last, err := removeDir(filepath.Join(pod, test.sandbox)); last != test.last || err != nil {
			t.Errorf("sandbox %s: last %v, %v; want %v", test.sandbox, last, err, test.last)
		}
	}
	if _, err := os.Stat(pod); !os.IsNotExist(err) {
		t.Errorf("the directory of the pod is left: %v", err)
	}
}
