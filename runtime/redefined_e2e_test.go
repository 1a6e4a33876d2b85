//go:build e2e

package runtime_test

import (
	"context"
	"strings"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRedefinedVolumes tests that files follow a changed definition of a running pod: those of a container when it starts, and those of
// running containers when WaitSandbox is called with the new definition.
func TestRedefinedVolumes(t *testing.T) {
	m := newTestHost(t)
	const text = `
labels = { app = "VALUE" }
hostAliases = [{ ip = "192.0.2.1", hostnames = ["VALUE.example"] }]
configMaps = [{ name = "conf", data = { k = "VALUE" } }]
secrets = [{ name = "keys", data = { k = "VALUE" } }]

[[containers]]
name = "running"
image = "localhost/podstead/busybox:1"
command = ["sleep", "3600"]
volumeMounts = { conf = "/conf", keys = "/keys", labels = "/labels" }

[[containers]]
name = "starting"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "cat /conf/k; echo; cat /keys; echo; cat /labels/app; echo; grep -o '[a-z]*.example' /etc/hosts"]
volumeMounts = { conf = "/conf", keys = { mountPath = "/keys", subPath = "k" }, labels = "/labels" }

[[volumes]]
name = "conf"
configMap.name = "conf"

[[volumes]]
name = "keys"
secret.secretName = "keys"

[[volumes]]
name = "labels"
downwardAPI.items = [{ path = "app", fieldRef.fieldPath = "metadata.labels['app']" }]
`
	p := newPod(m, m.parse(strings.ReplaceAll(text, "VALUE", "old")))
	ref, err := p.begin("running")
	if err != nil {
		t.Fatal(err)
	}
	p.Pod = m.parse(strings.ReplaceAll(text, "VALUE", "new"))
	wantLines(t, p.run("starting"), "new", "new", "new", "new.example")

	ctx, cancel := context.WithCancel(m.ctx())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = m.WaitSandbox(ctx, uid, p.Pod, 1)
	}()
	defer func() { cancel(); <-waited }()
	m.eventually("the files of the running container to follow", func() (string, bool) {
		_, out, err := m.Exec(m.ctx(), uid, ref,
			[]string{"sh", "-c", "cat /conf/k /keys/k /labels/app; grep -o '[a-z]*.example' /etc/hosts"}, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return string(out), string(out) == "newnewnewnew.example\n"
	})
	if _, err := m.StartContainer(m.ctx(), uid, p.Pod, lifecycle.StartContainer{Ref: ref, Sandbox: 1}); err != nil { // it was not restarted
		t.Error(err)
	}
}
