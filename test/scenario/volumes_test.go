//go:build e2e

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// follower is a script that reads two keys of each volume, which always change together, from one version of the volume. It prints each
// new value, and each pair that differs. When the gate opens, it prints its other sources.
const follower = `
look() {
	cd -P /$1/..data 2>/dev/null || return
	pair=$(cat a b 2>/dev/null) || return
	set -- $1 $pair
	[ $# = 3 ] || { echo "mix $*"; return; }
	[ "$2" = "$3" ] || echo "mix $*"
	eval last=\$last_$1
	[ "$2" = "$last" ] || { eval last_$1=$2; echo "$1 $2"; }
}
trap 'exit 0' TERM
while ! [ -e /gate/open ]; do look map; look secret; done
echo "sub $(cat /one) env $A"
while :; do sleep 0.1; done`

// source is the directory of a config map or secret. It is a symbolic link, so that it can be replaced atomically.
type source struct {
	f    *fixture
	link string
}

func (f *fixture) source(kind, name string) source {
	f.Helper()
	s := source{f, filepath.Join(f.Dir, "etc", kind, name)}
	f.Check(os.MkdirAll(filepath.Dir(s.link), 0o755)) // the files are private
	return s
}

// put sets both keys to the value, atomically.
func (s source) put(value int) error {
	dir := fmt.Sprintf("%s.%d", s.link, value)
	err := os.Mkdir(dir, 0o700)
	for _, key := range []string{"a", "b"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, key), fmt.Appendln(nil, value), 0o600)
		}
	}
	if err == nil {
		err = os.Symlink(dir, dir+".link")
	}
	if err == nil {
		err = os.Rename(dir+".link", s.link)
	}
	return err
}

// TestVolumesFollow: volumes follow their sources with atomic updates. Files of a subPath and environment variables do not change.
func TestVolumesFollow(t *testing.T) {
	f := newFixture(t)
	sources := []source{f.source("configmaps", "pair"), f.source("secrets", "pair")}
	for _, s := range sources {
		f.Check(s.put(0))
	}
	f.Check(os.Mkdir(filepath.Join(f.Dir, "gate"), 0o755))
	f.start("follower", shell("c", follower)+fmt.Sprintf(`
env.A.configMapKeyRef = { name = "pair", key = "a" }
volumeMounts = { map = "/map", secret = "/secret", gate = "/gate", sub = { mountPath = "/one", subPath = "a" } }
[[volumes]]
name = "map"
configMap = { name = "pair" }
[[volumes]]
name = "sub"
configMap = { name = "pair" }
[[volumes]]
name = "secret"
secret = { secretName = "pair" }
[[volumes]]
name = "gate"
hostPath = { path = %q }
`, filepath.Join(f.Dir, "gate")))
	f.line("follower", "map 0")
	f.line("follower", "secret 0")

	// The sources change constantly, so that an update that is not atomic would show.
	var writing sync.WaitGroup
	stop := make(chan struct{})
	var wrong error
	writing.Go(func() {
		pause := time.NewTicker(3 * time.Millisecond)
		defer pause.Stop()
		for i := 1; wrong == nil; i++ {
			for _, s := range sources {
				if wrong == nil {
					wrong = s.put(i)
				}
			}
			select {
			case <-pause.C:
			case <-stop:
				return
			}
		}
	})
	f.Await(func() error {
		text := f.logs("follower")
		if maps, secrets := strings.Count(text, "map "), strings.Count(text, "secret "); maps < 2 || secrets < 2 {
			return fmt.Errorf("the volumes have not been updated:\n%s", text)
		}
		return nil
	})
	close(stop)
	writing.Wait()
	f.Check(wrong)
	for _, s := range sources {
		f.Check(s.put(1_000_000))
	}
	f.line("follower", "map 1000000")
	f.line("follower", "secret 1000000")
	f.write("gate/open", "")
	if got, want := f.line("follower", "sub "), "0 env 0"; got != want {
		t.Errorf("subPath and environment variable: %q, want %q", got, want)
	}
	if text := f.logs("follower"); strings.Contains(text, "mix") {
		t.Errorf("a reader saw parts of two updates:\n%s", text)
	}
}

// waits returns a condition: the only container is waiting with this reason and a message that contains text.
func waits(reason api.Reason, text string) func(*api.Pod) bool {
	return func(p *api.Pod) bool {
		w := p.Status.ContainerStatuses[0].State.Waiting
		return p.Status.Phase == api.PhasePending && w != nil && w.Reason == reason && strings.Contains(w.Message, text)
	}
}

// TestPodsWaitForTheirConfig: a missing source keeps a container waiting with a message, until it exists.
func TestPodsWaitForTheirConfig(t *testing.T) {
	for _, test := range []struct {
		name, pod string
		reason    api.Reason
		message   string
		event     string
		file      string
	}{
		{
			"volume-map", "volumeMounts = { v = \"/v\" }\n[[volumes]]\nname = \"v\"\nconfigMap = { name = \"late\" }\n",
			api.ReasonContainerCreating, `configmap "late" not found`, "FailedMount", "etc/configmaps/late/key",
		},
		{
			"volume-secret", "volumeMounts = { v = \"/v\" }\n[[volumes]]\nname = \"v\"\nsecret = { secretName = \"late\" }\n",
			api.ReasonContainerCreating, `secret "late" not found`, "FailedMount", "etc/secrets/late/key",
		},
		{
			"env-key", "env.KEY.configMapKeyRef = { name = \"partly\", key = \"key\" }\n",
			api.ReasonCreateConfigError, "couldn't find key key in ConfigMap default/partly", "Failed", "etc/configmaps/partly/key",
		},
		{
			"env-from", "envFrom = [{ secretRef = { name = \"nowhere\" } }]\n",
			api.ReasonCreateConfigError, `secret "nowhere" not found`, "Failed", "etc/secrets/nowhere/key",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.write("etc/configmaps/partly/other", "x")
			f.MustCreate("late", shell("c", "echo up"+idle)+test.pod)
			f.Until("late", "waiting for "+test.message, waits(test.reason, test.message))
			f.event("late", test.event, test.message)
			f.write(test.file, "here")
			p := f.running("late")
			if c := p.Status.ContainerStatuses[0]; c.RestartCount != 0 {
				t.Errorf("waiting was counted as a restart: %+v", c)
			}
		})
	}
}

// TestSizeLimits: a pod is evicted if an emptyDir on disk exceeds its sizeLimit. One in memory cannot exceed it.
func TestSizeLimits(t *testing.T) {
	f := newFixture(t)
	f.MustCreate("greedy", shell("c", "head -c 4194304 /dev/zero > /scratch/x"+idle)+
		"volumeMounts = { scratch = \"/scratch\" }\n[[volumes]]\nname = \"scratch\"\nemptyDir = { sizeLimit = \"1Mi\" }\n")
	f.start("bounded", shell("c", "dd if=/dev/zero of=/memory/x bs=4k 2>&1; echo size $(stat -c %s /memory/x)"+idle)+
		"volumeMounts = { memory = \"/memory\" }\n[[volumes]]\nname = \"memory\"\nemptyDir = { medium = \"Memory\", sizeLimit = "+
		"\"1Mi\" }\n")
	if got, want := f.line("bounded", "size"), "1048576"; got != want {
		t.Errorf("size of the volume in memory: %s bytes, want %s", got, want)
	}
	if text := f.logs("bounded"); !strings.Contains(text, "No space left on device") {
		t.Errorf("the container got no error:\n%s", text)
	}
	p := f.Until("greedy", "evicted", func(p *api.Pod) bool { return p.Status.Phase == api.PhaseFailed && p.Status.AtRest })
	if p.Status.Reason != "Evicted" || !strings.Contains(p.Status.Message, `EmptyDir volume "scratch" exceeds the limit "1Mi"`) {
		t.Errorf("reason %s: %s", p.Status.Reason, p.Status.Message)
	}
	f.event("greedy", "Evicted", `EmptyDir volume "scratch" exceeds the limit "1Mi"`)
	if b := f.running("bounded"); b.Status.Phase != api.PhaseRunning {
		t.Errorf("phase of the other pod: %s", b.Status.Phase)
	}
}
