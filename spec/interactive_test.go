package spec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An interactive container is the same, whatever the format and the fields of the file, and nothing else changes.
func TestInteractive(t *testing.T) {
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	for file, text := range map[string]string{
		"table.toml":  "[[containers]]\nname = \"a\"\nimage = \"i\"\n[[containers]]\nname = \"b\"\nimage = \"i\"\n",
		"inline.toml": "containers = [{ name = \"a\", image = \"i\", tty = true, stdin = false }, { name = \"b\", image = \"i\" }]\n",
		"rules.toml": "[[containers]]\nname = \"a\"\nimage = \"i\"\nstdinOnce = false\nrestartPolicy = \"Always\"\n" +
			"restartPolicyRules = [{ action = \"Restart\", exitCodes = { operator = \"In\", values = [1] } }]\n[[containers]]\nname = " +
			"\"b\"\nimage = \"i\"\n",
		"block.yaml": manifest + "  containers:\n  - name: a\n    image: i\n  - name: b\n    image: i\n",
		"flow.json": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": ` +
			`"i"}, {"name": "b", "image": "i"}]}}`,
	} {
		for _, tty := range []bool{false, true} {
			pod, problems := Options{Interactive: &Interactive{Container: "a", TTY: tty}}.Accept(file, []byte(text))
			if pod == nil || len(problems) > 0 {
				t.Errorf("%s: %v", file, problems)
				continue
			}
			a, b := pod.Containers[0], pod.Containers[1]
			if !a.Stdin || a.StdinOnce == tty || a.TTY != tty || a.RestartPolicy != RestartNever || a.RestartPolicyRules != nil {
				t.Errorf("%s: %+v", file, a)
			}
			if pod.RestartPolicy != RestartNever || b.Stdin || b.TTY || b.RestartPolicy != "" {
				t.Errorf("%s: restart policy %s, other container %+v", file, pod.RestartPolicy, b)
			}
			plain, _ := Accept(file, []byte(text))
			if plain.Hash == pod.Hash || plain.Containers[0].Hash == a.Hash || plain.Containers[1].Hash != b.Hash {
				t.Errorf("%s: the hashes do not show what changed", file)
			}
		}
	}
}

// The restart policy that a file sets is that of its other containers. Problems have the positions of the file.
func TestInteractiveKeepsFile(t *testing.T) {
	text := "restartPolicy = \"OnFailure\"\n[[containers]]\nname = \"a\"\nimage = \"i\"\ncomand = [\"x\"]\nimagePullPolicy = \"No\"\n"
	o := Options{Interactive: &Interactive{Container: "a"}}
	_, want := Accept("p.toml", []byte(text))
	pod, got := o.Accept("p.toml", []byte(text))
	if diff := cmp.Diff(want, got); diff != "" || pod != nil || len(got) != 2 {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	pod, got = o.Accept("p.toml", []byte("restartPolicy = \"OnFailure\"\n[[containers]]\nname = \"a\"\nimage = \"i\"\n"))
	if pod == nil || pod.RestartPolicy != RestartOnFailure || pod.Containers[0].RestartPolicy != RestartNever {
		t.Errorf("%+v, %v", pod, got)
	}
	for _, text := range []string{"", "containers = 1\n", "containers = [1]\n", "[[containers]]\nname = 1\n"} {
		if pod, got := o.Accept("p.toml", []byte(text)); pod != nil || len(got) == 0 {
			t.Errorf("%q is valid", text)
		}
	}
}

// TestOneOff: a command has the definition of its container and of the pod, without the other containers and what is for a service, in each
// format.
func TestOneOff(t *testing.T) {
	toml := `waitFor = ["pod:db:ready"]
onUnhealthy = "restart"
update = { readyWithinSeconds = 5 }
labels.app = "web"
hostname = "www"
subdomain = "shop"
hostAliases = [{ ip = "192.0.2.1", hostnames = ["a"] }]
[[volumes]]
name = "data"
persistentVolumeClaim.claimName = "data"
[[initContainers]]
name = "init"
image = "i"
[[containers]]
name = "side"
image = "i"
ports = [{ containerPort = 80, hostPort = 80 }]
[[containers]]
name = "app"
image = "i"
command = ["serve"]
args = ["--all"]
workingDir = "/srv"
env.A = "1"
ports = [{ name = "http", containerPort = 81, hostPort = 81 }]
livenessProbe.httpGet.port = "http"
lifecycle.preStop.sleep.seconds = 1
volumeMounts.data = "/data"
`
	yaml := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  readinessGates: [{conditionType: a}]\n" +
		"  hostname: www\n  subdomain: shop\n" +
		"  hostAliases: [{ip: 192.0.2.1, hostnames: [a]}]\n  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n" +
		"  initContainers: [{name: init, image: i}]\n  containers:\n  - {name: side, image: i}\n  - name: app\n    image: i\n" +
		"    workingDir: /srv\n" +
		"    env: [{name: A, value: '1'}]\n    ports: [{containerPort: 81, hostPort: 81}]\n    livenessProbe: {httpGet: {port: 81}}\n" +
		"    volumeMounts: [{name: data, mountPath: /data}]\n"
	for file, text := range map[string]string{"web.toml": toml, "web.yaml": yaml} {
		o := Options{Interactive: &Interactive{Container: "app", Name: "web-run-1", Command: []string{"migrate", "-v"}}}
		pod, problems := o.Accept(file, []byte(text))
		if pod == nil || len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
			continue
		}
		if pod.Name != "web-run-1" || pod.RestartPolicy != RestartNever || len(pod.InitContainers) > 0 || len(pod.WaitFor) > 0 ||
			pod.OnUnhealthy != "" || pod.Update != nil || len(pod.ReadinessGates) > 0 || len(pod.Containers) != 1 ||
			pod.Hostname != "" || pod.Subdomain != "" {
			t.Fatalf("%s: %+v", file, pod)
		}
		if pod.Labels["app"] != "web" || len(pod.HostAliases) != 1 || len(pod.Volumes) != 1 {
			t.Errorf("%s: the definition of the pod is lost: %+v", file, pod)
		}
		c := pod.Containers[0]
		if c.Name != "app" || !slices.Equal(c.Command, []string{"migrate", "-v"}) || c.Args != nil || c.Ports != nil ||
			c.LivenessProbe != nil || c.Lifecycle != nil {
			t.Errorf("%s: %+v", file, c)
		}
		if c.WorkingDir != "/srv" || len(c.Env) != 1 || len(c.VolumeMounts) != 1 {
			t.Errorf("%s: the definition of the container is lost: %+v", file, c)
		}
	}
}

// TestOneOffWords: the words of a command reach the program as they were typed, with those that are references in a pod file.
func TestOneOffWords(t *testing.T) {
	words := []string{"sh", "-c", "kill -9 $$", "$(A)", "$$(A)", "$", "$$$", "$(", "${A}", "a$(B)$"}
	o := Options{Interactive: &Interactive{Container: "app", Name: "web-run-1", Command: words}}
	pod, problems := o.Accept("web.toml", []byte("[[containers]]\nname = \"app\"\nimage = \"i\"\nenv.A = \"1\"\n"))
	if pod == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	for i, word := range pod.Containers[0].Command {
		got, ok := Expand(word, map[string]string{"A": "1"}, MaxProcessBytes)
		if !ok || got != words[i] {
			t.Errorf("%q runs as %q", words[i], got)
		}
	}
}
