//go:build e2e

package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestLostBundles: containers whose bundles are removed, as by a program that cleans /run, keep running: beside a daemon that runs, and
// while daemon and monitor are killed. Commands run in them with the values of secrets, and they can be restarted and deleted.
func TestLostBundles(t *testing.T) {
	f := newFixture(t)
	d := &podsDir{fixture: f}
	f.MustRun("get")
	before := map[string][]string{}
	pods := map[string]string{"users": "hostUsers = false\n", "shared": "shareProcessNamespace = true\n"}
	for name, more := range pods {
		f.MustCreate(name, more+"terminationGracePeriodSeconds = 1\nrestartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"+
			"[[secrets]]\nname = \"db\"\ndata = { password = \"swordfish\" }\n"+
			container("c", fmt.Sprintf(": marker=%s; %s", name, waits))+
			"env = [{ name = \"PASSWORD\", valueFrom.secretKeyRef = { name = \"db\", key = \"password\" } }]\n"+
			"readinessProbe = { exec = { command = [\"sh\", \"-c\", \"test \\\"$PASSWORD\\\" = swordfish\"] }, periodSeconds = 1, "+
			"timeoutSeconds = 60, failureThreshold = 1 }\n")
		f.Until(name, "ready", podReady)
		before[name] = f.running(name)
	}
	kept := func(what string) {
		f.Helper()
		f.MustRun("get") // starts the daemon if none runs
		for name := range pods {
			f.Until(name, "ready after "+what, podReady)
			if got := f.MustRun("exec", name, "--", "sh", "-c", "echo $PASSWORD"); got != "swordfish\n" {
				f.Errorf("%s: a command in %s prints %q", what, name, got)
			}
			if now := f.running(name); !slices.Equal(now, before[name]) {
				f.Errorf("%s: the containers of %s were %v and are %v", what, name, before[name], now)
			}
		}
	}
	const bundles = "r/engine/bundles"
	d.lose(bundles, false)
	kept("the loss beside a daemon")
	f.MustKillDaemon()
	d.lose(bundles, false)
	kept("the loss without a daemon")
	f.MustKillDaemon()
	f.killHolders()
	d.lose(bundles, false)
	kept("the loss without daemon and monitor")

	d.lose(bundles, false)
	f.Check(rig.Kill(f.Ctx(), f.process("marker=users")))
	f.process("marker=users")
	f.Until("users", "ready after its container was killed", podReady)
	if out := f.MustRun("get", "users"); !strings.Contains(out, " 1/1 ") {
		f.Errorf("the pod whose container was killed:\n%s", out)
	}
	f.MustRun("delete", "users", "shared")
}
