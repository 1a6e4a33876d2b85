package doctor

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime/network"
)

func TestPodsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods.d")
	c := client.New(filepath.Join(t.TempDir(), "none.sock"), "podstead doctor")
	defer c.Close()
	check := func(want Grade, parts ...string) {
		t.Helper()
		r := podsDirectory(t.Context(), &config.Pods{Dir: dir}, c)
		if r.grade != want {
			t.Errorf("grade %s, want %s: %s", r.grade, want, r.detail)
		}
		for _, part := range parts {
			if !strings.Contains(r.detail+"\n"+r.hint, part) {
				t.Errorf("%q is not in %q, hint %q", part, r.detail, r.hint)
			}
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check(OK, "does not exist")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write("web.toml", "[[containers]]\nname = \"c\"\nimage = \"i\"\n")
	check(OK, dir, "pod files: 1")
	write("bad.toml", "[[containers]]\nname = \"c\"\nimage = 7\n")
	if err := os.Symlink("nowhere", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	check(Warn, dir+"/bad.toml:3:9: containers[0].image: ", dir+"/link.yaml: no such file", "podstead validate "+dir)
	for _, name := range []string{"p1", "p2", "p3", "p4"} {
		write(name+".toml", "x")
	}
	check(Warn, "and 1 more")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	check(Warn, "writable by all users", "chmod o-w "+dir)
}

// TestPodsDirectoryMaxReplicas: the limit is that of the host.
func TestPodsDirectoryMaxReplicas(t *testing.T) {
	dir := t.TempDir()
	text := `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 20,
		"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
		"spec": {"containers": [{"name": "c", "image": "i"}]}}}}`
	if err := os.WriteFile(filepath.Join(dir, "web.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]Grade{16: Warn, 20: OK} {
		if r := podsDirResult(&config.Pods{Dir: dir, MaxReplicas: limit}, nil, nil); r.grade != want {
			t.Errorf("at most %d: grade %s, want %s: %s", limit, r.grade, want, r.detail)
		}
	}
}

// daemonWith returns a client of a daemon that has these pods.
func daemonWith(t *testing.T, pods ...api.Pod) *client.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pods", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(api.PodList{Items: pods}); err != nil {
			t.Error(err)
		}
	})
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	c := client.New(socket, "podstead doctor")
	t.Cleanup(c.Close)
	return c
}

// podOf returns a pod that follows a file; "": none.
func podOf(name, uid, file string, conditions ...api.Condition) api.Pod {
	p := api.Pod{Kind: "Pod", APIVersion: "v1", Metadata: api.Metadata{Name: name, UID: uid, Namespace: "default"}}
	p.Status.File, p.Status.Conditions = file, conditions
	return p
}

// TestPodsDirectoryOfDaemon: what the daemon has refused or lost is reported for as long as that is so.
func TestPodsDirectoryOfDaemon(t *testing.T) {
	full, empty := t.TempDir(), t.TempDir()
	path := filepath.Join(full, "web.toml")
	if err := os.WriteFile(path, []byte("[[containers]]\nname = \"c\"\nimage = \"i\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(empty, "gone")
	refused := func(reason api.Reason, message string) api.Condition {
		return api.Condition{Type: api.FileAccepted, Status: "False", Reason: reason, Message: message}
	}
	without := podOf("new", "", "")
	without.Status.Phase, without.Status.Reason, without.Status.Message = api.PhaseFailed, api.ReasonRejected, "runs as root"
	deleted := podOf("web", "u", filepath.Join(gone, "web.toml"))
	deleted.Metadata.DeletionTimestamp = &time.Time{}
	running := podOf("web", "u", path)
	for _, test := range []struct {
		name, dir string
		pods      []api.Pod
		want      Grade
		detail    string
	}{
		{"file runs", full, []api.Pod{running}, OK, full + ", pod files: 1"},
		{
			"update rejected", full,
			[]api.Pod{podOf("web", "u", path, refused(api.ReasonRejected, "host paths: none"))},
			Warn,
			"web: host paths: none",
		},
		{
			"update waits", full,
			[]api.Pod{podOf("web", "u", path, refused(api.ReasonUpdatePending, "waits for image"))},
			Warn,
			"web: waits for image",
		},
		{
			"rolled back", full,
			[]api.Pod{podOf("web", "u", path, refused(api.ReasonRolledBack, "generation 2 was rolled back"))},
			Warn,
			"web: generation 2 was rolled back",
		},
		{"new pod rejected", full, []api.Pod{running, without}, Warn, "new: runs as root"},
		{
			"directory missing", gone,
			[]api.Pod{podOf("web", "u", filepath.Join(gone, "web.toml"))},
			Warn,
			gone + " does not exist, its pods are kept: web",
		},
		{
			"directory empty", empty,
			[]api.Pod{podOf("web", "u", filepath.Join(empty, "web.toml"))},
			Warn,
			empty + " has no pod files, its pods are kept: web",
		},
		{"pods of another directory", empty, []api.Pod{running, podOf("run", "v", "")}, OK, empty + ", pod files: 0"},
		{"pod is being deleted", gone, []api.Pod{deleted}, OK, gone + " does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := podsDirectory(t.Context(), &config.Pods{Dir: test.dir}, daemonWith(t, test.pods...))
			if r.grade != test.want || r.detail != test.detail {
				t.Errorf("%s: %q, want %s: %q", r.grade, r.detail, test.want, test.detail)
			}
		})
	}
}

// TestUnsavedPods: a pod whose state is not on the disk is reported.
func TestUnsavedPods(t *testing.T) {
	if r := unsavedPods(t.Context(), daemonWith(t, podOf("web", "u", ""))); r.grade != OK {
		t.Errorf("%+v", r)
	}
	full := api.Condition{Type: api.StateNotDurable, Status: "True", Reason: "WriteFailed", Message: "no space left on device"}
	r := unsavedPods(t.Context(), daemonWith(t, podOf("web", "u", ""), podOf("db", "v", "", full)))
	if r.grade != Warn || r.detail != "db: no space left on device" || r.hint == "" {
		t.Errorf("%+v", r)
	}
}

// TestStaleVolumes: a pod whose volumes are not updated is reported.
func TestStaleVolumes(t *testing.T) {
	full := api.Condition{Type: api.StateNotDurable, Status: "True", Reason: "WriteFailed", Message: "no space left on device"}
	if r := staleVolumes(t.Context(), daemonWith(t, podOf("web", "u", "", full))); r.grade != OK {
		t.Errorf("%+v", r)
	}
	stale := api.Condition{Type: api.VolumesNotUpdated, Status: "True", Message: `volume "tls": secret "web" not found`}
	r := staleVolumes(t.Context(), daemonWith(t, podOf("web", "u", ""), podOf("db", "v", "", stale)))
	if r.grade != Warn || r.detail != `db: volume "tls": secret "web" not found` || r.hint == "" {
		t.Errorf("%+v", r)
	}
}

// TestHiddenNames: a pod that others do not reach by its name is reported while it runs.
func TestHiddenNames(t *testing.T) {
	hidden, finished := podOf("kubernetes", "u", ""), podOf("metadata", "v", "")
	finished.Status.Phase = api.PhaseSucceeded
	if r := hiddenNames(t.Context(), daemonWith(t, podOf("web", "w", ""), finished)); r.grade != OK {
		t.Errorf("%+v", r)
	}
	r := hiddenNames(t.Context(), daemonWith(t, podOf("web", "w", ""), hidden))
	const want = `kubernetes: other pods cannot reach the pod by the name "kubernetes": it has a meaning in clusters or networks`
	if r.grade != Warn || r.detail != want || r.hint == "" {
		t.Errorf("%+v", r)
	}
	names, err := network.HostNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if r := hiddenNames(t.Context(), daemonWith(t, podOf(name, "u", ""))); r.grade != Warn || !strings.HasPrefix(r.detail, name+": ") {
			t.Errorf("a pod with the name %s of this host: %+v", name, r)
		}
	}
}

// TestRejectedOnce: a rejected pod is reported by the check of rejections, and not by that of the directory too.
func TestRejectedOnce(t *testing.T) {
	const sysctl = "securityContext.sysctls[0].name: forbidden sysctl"
	rejected := podOf("web", "", "")
	rejected.Status.Reason, rejected.Status.Message = "SysctlForbidden", "Pod was rejected: "+sysctl
	inUse := api.Condition{Type: api.FileAccepted, Status: "False", Reason: "Rejected", Message: "NodePorts: in use"}
	changed := podOf("db", "u", "", inUse)
	waits := podOf("late", "", "")
	waits.Status.Message = "the image is being pulled"
	pods := []api.Pod{rejected, changed, waits}
	events := map[string]api.Event{
		"web": {Fields: map[string]string{"error": "SysctlForbidden: " + sysctl}},
		"db":  {Fields: map[string]string{"error": "NodePorts: in use"}},
	}
	if refused, _ := refusedFiles(pods, events); !slices.Equal(refused, []string{"late: the image is being pulled"}) {
		t.Errorf("refused files: %q", refused)
	}
	if refused, _ := refusedFiles(pods, nil); len(refused) != 3 {
		t.Errorf("refused files without events: %q", refused)
	}
}

// TestRolledBackHint expects that the hint for a pod that was rolled back has the command that shows why.
func TestRolledBackHint(t *testing.T) {
	dir := t.TempDir()
	pod := podOf("web", "u", filepath.Join(dir, "web.toml"),
		api.Condition{Type: api.FileAccepted, Status: "False", Reason: api.ReasonRolledBack})
	if err := os.WriteFile(pod.Status.File, []byte("[[containers]]\nname = \"c\"\nimage = \"i\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "change the file with podstead edit POD, or its image: podstead rollout history POD shows the generations of the pod"
	if r := podsDirectory(t.Context(), &config.Pods{Dir: dir}, daemonWith(t, pod)); r.hint != want {
		t.Errorf("hint %q, want %q", r.hint, want)
	}
}
