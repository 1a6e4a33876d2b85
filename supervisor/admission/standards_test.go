package admission

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	standards "k8s.io/pod-security-admission/policy"
	"pgregory.net/rapid"

	"github.com/podstead/podstead/spec"
)

// upstreamChecks maps the checks of k8s.io/pod-security-admission to controls; "" means that pod files have no such field.
var upstreamChecks = map[standards.CheckID]string{
	"hostNamespaces":             "Host Namespaces",
	"privileged":                 "Privileged Containers",
	"capabilities_baseline":      "Capabilities",
	"hostPathVolumes":            "HostPath Volumes",
	"hostPorts":                  "Host Ports",
	"hostProbesAndHostLifecycle": "Host Probes / Lifecycle Hooks",
	"appArmorProfile":            "AppArmor",
	"procMount":                  "/proc Mount Type",
	"seccompProfile_baseline":    "Seccomp",
	"sysctls":                    "Sysctls",
	"seLinuxOptions":             "",
	"windowsHostProcess":         "",

	"capabilities_restricted":   "Capabilities",
	"procMount_restricted":      "/proc Mount Type",
	"restrictedVolumes":         "HostPath Volumes",
	"seccompProfile_restricted": "Seccomp",
	"allowPrivilegeEscalation":  "Privilege Escalation",
	"runAsNonRoot":              "Running as Non-root",
	"runAsUser":                 "Running as Non-root user",
}

// TestPodSecurityMatchesKubernetes compares every control with the library of the API server, for random pods. It fails if a
// newer version of the standards has additional checks.
func TestPodSecurityMatchesKubernetes(t *testing.T) {
	checks := standards.DefaultChecks()
	ids := map[standards.CheckID]bool{}
	for _, c := range checks {
		ids[c.ID] = true
		if _, known := upstreamChecks[c.ID]; !known {
			t.Errorf("check %s of the standards is missing", c.ID)
		}
	}
	if len(ids) != len(upstreamChecks) {
		t.Errorf("the standards have %d checks, the table has %d", len(ids), len(upstreamChecks))
	}
	seen := map[string]int{} // violations of each control: every control must be exercised
	covered := func() bool { return len(seen) == len(controls) }
	for round := 0; round < 20 && !covered() && !t.Failed(); round++ { // one round rarely violates every control
		rapid.Check(t, func(t *rapid.T) { compareControls(t, checks, seen) })
	}
	for _, c := range controls {
		if seen[c.title] == 0 {
			t.Errorf("%s was never violated: the random pods do not cover it", c.title)
		}
	}
}

// compareControls compares every control for a random pod, and counts violations by control.
func compareControls(t *rapid.T, checks []standards.Check, seen map[string]int) {
	pod := drawPod(t)
	meta, upstreamPod := toKubernetes(t, pod)
	for _, level := range []Level{Baseline, Restricted} {
		want := deniedByKubernetes(checks, level, meta, upstreamPod)
		for _, c := range controls {
			r := &review{pod: pod}
			c.run(r, level)
			if got := len(r.refusals) > 0; got != want[c.title] {
				t.Fatalf("%s, %s: denied %v, by Kubernetes %v", level, c.title, got, want[c.title])
			}
			if len(r.refusals) > 0 {
				seen[c.title]++
			}
		}
	}
}

// deniedByKubernetes returns the controls of the newest version that a pod violates.
func deniedByKubernetes(checks []standards.Check, level Level, meta *metav1.ObjectMeta, pod *corev1.PodSpec) map[string]bool {
	newest := func(c standards.Check) standards.VersionedCheck { return c.Versions[len(c.Versions)-1] }
	overridden := map[standards.CheckID]bool{}
	for _, c := range checks {
		for _, id := range newest(c).OverrideCheckIDs {
			overridden[id] = overridden[id] || level == Restricted
		}
	}
	denied := map[string]bool{}
	for _, c := range checks {
		if string(c.Level) == string(Restricted) && level != Restricted || overridden[c.ID] {
			continue
		}
		if !newest(c).CheckPod(meta, pod).Allowed {
			denied[upstreamChecks[c.ID]] = true
		}
	}
	return denied
}

// toKubernetes converts a pod to the API type. The field names are the same.
func toKubernetes(t *rapid.T, pod *spec.Pod) (*metav1.ObjectMeta, *corev1.PodSpec) {
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	out := &corev1.PodSpec{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &metav1.ObjectMeta{Annotations: pod.Annotations}, out
}

func drawPod(t *rapid.T) *spec.Pod {
	flag := func(label string) bool { return rapid.IntRange(0, 7).Draw(t, label) == 0 }
	pod := &spec.Pod{
		HostNetwork: flag("hostNetwork"), HostPID: flag("hostPID"), HostIPC: flag("hostIPC"), HostUsers: drawBool(t, "hostUsers"),
		InitContainers:      drawContainers(t, 0, 1),
		Containers:          drawContainers(t, 1, 2),
		EphemeralContainers: drawContainers(t, 0, 1),
	}
	if flag("hostPath") {
		pod.Volumes = append(pod.Volumes, spec.Volume{Name: "h", HostPath: &spec.HostPathVolume{Path: "/srv"}})
	}
	pod.Volumes = append(pod.Volumes, rapid.SampledFrom([]spec.Volume{
		{Name: "v", EmptyDir: &spec.EmptyDirVolume{}},
		{Name: "v", Image: &spec.ImageVolume{Reference: "x"}},
		{Name: "v", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "x"}},
		{Name: "v", Secret: &spec.SecretVolume{SecretName: "x"}},
		{Name: "v", ConfigMap: &spec.ConfigMapVolume{Name: "x"}},
		{Name: "v", Projected: &spec.ProjectedVolume{}},
		{Name: "v", DownwardAPI: &spec.DownwardAPIVolume{}},
	}).Draw(t, "volume"))
	if value := rapid.SampledFrom([]string{"-", "-", "", "unconfined", "runtime/default", "localhost/x"}).Draw(t,
		"annotation"); value != "-" {
		pod.Annotations = map[string]string{appArmorAnnotation + "c": value}
	}
	if rapid.Bool().Draw(t, "pod context") {
		pod.SecurityContext = &spec.PodSecurityContext{
			RunAsUser: drawUser(t), RunAsNonRoot: drawBool(t, "nonRoot"), SeccompProfile: drawProfile(t, "seccomp"),
			AppArmorProfile: drawProfile(t, "apparmor"),
		}
		names := append(slices.Clone(standardSysctls), "kernel.msgmax", "net.core.somaxconn", "net/ipv4/tcp_syncookies")
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "sysctls") {
			pod.SecurityContext.Sysctls = append(pod.SecurityContext.Sysctls, spec.Sysctl{Name: name, Value: "1"})
		}
	}
	return pod
}

func drawContainers(t *rapid.T, least, most int) []spec.Container {
	list := make([]spec.Container, rapid.IntRange(least, most).Draw(t, "containers"))
	for i := range list {
		c := &list[i]
		c.Name = "c"
		c.Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: rapid.SampledFrom([]int32{0, 0, 0, 8080}).Draw(t, "hostPort")}}
		c.LivenessProbe = &spec.Probe{HTTPGet: drawGet(t)}
		c.ReadinessProbe = &spec.Probe{TCPSocket: &spec.TCPSocketAction{Port: spec.Port{Number: 80}, Host: drawHost(t)}}
		c.StartupProbe = &spec.Probe{HTTPGet: drawGet(t)}
		c.Lifecycle = &spec.Lifecycle{
			PostStart: &spec.LifecycleHandler{HTTPGet: drawGet(t)}, PreStop: &spec.LifecycleHandler{HTTPGet: drawGet(t)},
		}
		if rapid.IntRange(0, 3).Draw(t, "context") > 0 {
			c.SecurityContext = drawContext(t)
		}
	}
	return list
}

func drawContext(t *rapid.T) *spec.SecurityContext {
	s := &spec.SecurityContext{
		Privileged: drawBool(t, "privileged"), AllowPrivilegeEscalation: drawBool(t, "escalation"), RunAsUser: drawUser(t),
		RunAsNonRoot: drawBool(t, "nonRoot"), SeccompProfile: drawProfile(t, "seccomp"), AppArmorProfile: drawProfile(t, "apparmor"),
		ProcMount: rapid.SampledFrom([]string{"", "Default", "Unmasked"}).Draw(t, "procMount"),
	}
	if rapid.Bool().Draw(t, "capabilities") {
		name := rapid.SampledFrom(append(slices.Clone(baselineCapabilities), "ALL", "NET_RAW", "SYS_ADMIN", "NET_BIND_SERVICE"))
		s.Capabilities = &spec.Capabilities{
			Add:  rapid.SliceOfN(name, 0, 1).Draw(t, "add"),
			Drop: rapid.SliceOfN(rapid.SampledFrom([]string{"ALL", "KILL"}), 0, 1).Draw(t, "drop"),
		}
	}
	return s
}

func drawHost(t *rapid.T) string {
	if rapid.IntRange(0, 15).Draw(t, "host") == 0 {
		return "10.0.0.1"
	}
	return ""
}

func drawGet(t *rapid.T) *spec.HTTPGetAction {
	return &spec.HTTPGetAction{Port: spec.Port{Name: "http"}, Host: drawHost(t)}
}

func drawBool(t *rapid.T, label string) *bool {
	return rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, label)
}

func drawUser(t *rapid.T) *int64 {
	return rapid.SampledFrom([]*int64{nil, new(int64(0)), new(int64(1000))}).Draw(t, "user")
}

func drawProfile(t *rapid.T, label string) *spec.SecurityProfile {
	kind := rapid.SampledFrom([]string{"", "", runtimeDefault, localhost, "Unconfined"}).Draw(t, label)
	if kind == "" {
		return nil
	}
	return &spec.SecurityProfile{Type: kind}
}
