package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestObjectNames checks that every reference is found, and that an object is required if one of its references is.
func TestObjectNames(t *testing.T) {
	p := mustParse(t, "web.toml", `
configMaps = [{ name = "inline", data = { key = "v" } }, { name = "unused", data = {} }]
secrets = [{ name = "inline-secret", data = { key = "v" } }]
[[volumes]]
name = "conf"
configMap = { name = "volume" }
[[volumes]]
name = "idle"
projected.sources = [{ configMap = { name = "unmounted" } }, { secret = { name = "unmounted-secret" } }]
[[volumes]]
name = "maybe"
configMap = { name = "twice", optional = true }
[[volumes]]
name = "key"
secret = { secretName = "volume-secret", optional = true }
[[volumes]]
name = "all"
projected.sources = [
  { configMap = { name = "projected", optional = true } },
  { secret = { name = "projected-secret" } },
  { downwardAPI.items = [{ path = "a", fieldRef.fieldPath = "metadata.name" }] },
]
[[initContainers]]
name = "init"
image = "busybox"
env.A.configMapKeyRef = { name = "twice", key = "a" }
env.B.secretKeyRef = { name = "init-secret", key = "b", optional = true }
env.C = "value"
env.D.fieldRef.fieldPath = "metadata.name"
[[containers]]
name = "app"
image = "busybox"
volumeMounts = { conf = "/conf", key = "/key", all = "/all" }
envFrom = [{ configMapRef = { name = "from", optional = true } }, { secretRef = { name = "from-secret" } }]
env.B.secretKeyRef = { name = "init-secret", key = "b", optional = true }
`)
	p.EphemeralContainers = []Container{{Name: "debug", EnvFrom: []EnvFrom{
		{ConfigMapRef: &EnvReference{Name: "debug"}}, {SecretRef: &EnvReference{Name: "init-secret"}},
	}}}
	configMaps := map[string]bool{
		"inline": true, "unused": true, "volume": true, "twice": true, "projected": false, "from": false, "debug": true, "unmounted": false,
	}
	if diff := cmp.Diff(configMaps, p.ConfigMapNames()); diff != "" {
		t.Errorf("config maps (-want +got):\n%s", diff)
	}
	secrets := map[string]bool{
		"inline-secret": true, "volume-secret": false, "projected-secret": true, "init-secret": true, "from-secret": true,
		"unmounted-secret": false,
	}
	if diff := cmp.Diff(secrets, p.SecretNames()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestMounted(t *testing.T) {
	mount := func(name, volume string) Container {
		return Container{Name: name, VolumeMounts: []VolumeMount{{Name: volume, MountPath: "/v"}}}
	}
	p := &Pod{
		InitContainers: []Container{mount("i", "init")}, Containers: []Container{mount("a", "app"), mount("b", "app")},
		EphemeralContainers: []Container{mount("e", "debug")},
		Volumes:             []Volume{{Name: "app"}, {Name: "none"}, {Name: "debug"}, {Name: "init"}},
	}
	names := func(p *Pod) (list []string) {
		for _, v := range p.Volumes {
			list = append(list, v.Name)
		}
		return list
	}
	if diff := cmp.Diff([]string{"app", "debug", "init"}, names(p.Mounted())); diff != "" {
		t.Errorf("mounted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"app"}, names(p.MountedBy(&p.Containers[0]))); diff != "" || len(p.Volumes) != 4 {
		t.Errorf("mounted by a container (-want +got):\n%s", diff)
	}
}
