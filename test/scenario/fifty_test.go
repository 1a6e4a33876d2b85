//go:build e2e

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
)

const fifty = 50

// report is the script of each of the fifty containers: it prints everything that its pod was given.
const report = `echo "host $(hostname) env $color $S_password $POD_IP uid $POD_UID"
echo "eth0 $(ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1)"
echo "map $(cat /conf/color) secret $(cat /secret/password) $(stat -L -c %a /secret/password)"
echo "all $(ls /all | tr '\n' ' ')$(cat /all/color /all/password /all/name)"
echo "info $(cat /info/labels) one $(cat /one)"
echo $HOSTNAME > /disk/word; echo $HOSTNAME > /memory/word; echo $HOSTNAME > /claim/word; echo $HOSTNAME > /host/$HOSTNAME
for m in disk memory claim; do echo "$m $(cat /$m/word) $(awk -v m=/$m '$2 == m { print $3 }' /proc/mounts | grep -c tmpfs)"; done
echo "host $(cat /host/word)"
mkdir /www; hostname > /www/index.html; httpd -p 8080 -h /www; echo done` + idle

// want returns the expected report of a pod.
func want(p *api.Pod) string {
	name := p.Metadata.Name
	return strings.NewReplacer("NAME", name, "UID", p.Metadata.UID, "IP", p.Status.PodIP).Replace(`host NAME env blue hunter2 IP uid UID
eth0 IP
map blue secret hunter2 400
all color name password bluehunter2NAME
info app="fifty" one blue
disk NAME 0
memory NAME 1
claim NAME 0
host word
done
`)
}

// one returns the pod file of one of the fifty pods. Every fifth has a host port.
func (f *fixture) one(i int) string {
	port := ""
	if i%5 == 0 {
		port = fmt.Sprintf("ports = [{ containerPort = 8080, hostPort = %d }]\n", 20000+i)
	}
	return "terminationGracePeriodSeconds = 5\nlabels = { app = \"fifty\" }\n" + shell("c", report) + port + fmt.Sprintf(`
env.POD_IP.fieldRef = { fieldPath = "status.podIP" }
env.POD_UID.fieldRef = { fieldPath = "metadata.uid" }
envFrom = [{ configMapRef = { name = "shop" } }, { prefix = "S_", secretRef = { name = "db" } }]
[containers.volumeMounts]
disk = "/disk"
memory = "/memory"
conf = "/conf"
secret = "/secret"
all = "/all"
info = "/info"
host = "/host"
claim = "/claim"
files = { mountPath = "/one", subPath = "color" }
[[volumes]]
name = "disk"
emptyDir = { sizeLimit = "16Mi" }
[[volumes]]
name = "memory"
emptyDir = { medium = "Memory", sizeLimit = "1Mi" }
[[volumes]]
name = "conf"
configMap = { name = "shop" }
[[volumes]]
name = "files"
configMap = { name = "shop" }
[[volumes]]
name = "secret"
secret = { secretName = "db", defaultMode = 0o400 }
[[volumes]]
name = "info"
downwardAPI = { items = [{ path = "labels", fieldRef = { fieldPath = "metadata.labels" } }] }
[[volumes]]
name = "host"
hostPath = { path = %q, type = "Directory" }
[[volumes]]
name = "claim"
persistentVolumeClaim = { claimName = "claim-%d" }
[[volumes]]
name = "all"
[[volumes.projected.sources]]
configMap = { name = "shop" }
[[volumes.projected.sources]]
secret = { name = "db" }
[[volumes.projected.sources]]
downwardAPI = { items = [{ path = "name", fieldRef = { fieldPath = "metadata.name" } }] }
`, filepath.Join(f.Dir, "host"), i)
}

// TestFiftyPods: fifty pods that use all features start together, and each sees what it was given. After their deletion only their
// claims are left.
func TestFiftyPods(t *testing.T) {
	f := newFixture(t)
	f.write("etc/configmaps/shop/color", "blue")
	f.write("etc/secrets/db/password", "hunter2")
	f.write("host/word", "word\n")
	f.start("fifty-99", f.one(99)) // creates files that stay
	f.line("fifty-99", "done")
	f.MustRun("delete", "fifty-99", "--grace-period", "2")
	f.Await(f.noPods)
	before := map[string]bool{}
	for _, path := range f.files() {
		before[path] = true
	}
	descriptors := f.descriptors()

	var group errgroup.Group
	for i := range fifty {
		name, ctx := fmt.Sprintf("fifty-%d", i), f.Ctx()
		text := f.PodText(name, f.one(i))
		group.Go(func() error {
			_, err := f.Create(ctx, name, text)
			return err
		})
	}
	f.Check(group.Wait())
	addresses := map[string]string{}
	for i := range fifty {
		name := fmt.Sprintf("fifty-%d", i)
		p := f.running(name)
		f.line(name, "done")
		if diff := cmp.Diff(want(&p), f.logs(name)); diff != "" {
			t.Errorf("report of pod %s (-want +got):\n%s", name, diff)
		}
		if other := addresses[p.Status.PodIP]; other != "" {
			t.Errorf("pods %s and %s have the same address %s", name, other, p.Status.PodIP)
		}
		addresses[p.Status.PodIP] = name
		places := []string{p.Status.PodIP + ":8080"}
		if i%5 == 0 {
			places = append(places, fmt.Sprintf("127.0.0.1:%d", 20000+i))
		}
		for _, place := range places {
			f.Await(func() error {
				got, err := space("").get(f.Ctx(), "http://"+place)
				if err == nil && got != name {
					t.Errorf("response of %s: %q, want %s", place, got, name)
				}
				return err
			})
		}
	}

	f.MustRun("delete", "--all", "--grace-period", "2")
	f.Await(f.noPods)
	claims := []string{"claim-99"}
	for i := range fifty {
		claims = append(claims, fmt.Sprintf("claim-%d", i))
	}
	f.checkClaims(claims)
	f.Await(func() error {
		history := filepath.Join(f.StateDir(), "events") // the events of a bounded number of deleted pods are kept for `podstead why`
		expected := func(path string) bool { return before[path] || filepath.Dir(path) == history }
		if left := slices.DeleteFunc(f.files(), expected); len(left) > 0 {
			return fmt.Errorf("files are left:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
	f.Await(func() error {
		if now := f.descriptors(); now > descriptors+10 {
			return fmt.Errorf("open descriptors of the daemon: were %d, are %d", descriptors, now)
		}
		return nil
	})
}

// checkClaims checks that exactly these volumes exist, each with its pod's file, and removes them.
func (f *fixture) checkClaims(claims []string) {
	f.Helper()
	slices.Sort(claims)
	list, err := f.Client().Volumes(f.Ctx())
	f.Check(err)
	var have []string
	for _, v := range list.Items {
		have = append(have, v.Name)
		number := strings.TrimPrefix(v.Name, "claim-")
		text, err := os.ReadFile(filepath.Join(f.StateDir(), "volumes", v.Name, "word"))
		if err != nil || string(text) != "fifty-"+number+"\n" || len(v.Pods) > 0 {
			f.Errorf("volume %s contains %q, %v, and is used by %v", v.Name, text, err, v.Pods)
		}
		f.Check(f.Client().RemoveVolume(f.Ctx(), v.Name))
	}
	if diff := cmp.Diff(claims, have); diff != "" {
		f.Errorf("volumes (-want +got):\n%s", diff)
	}
}

// noPods returns an error if the daemon still has pods, or network leases, links and map elements of pods.
func (f *fixture) noPods() error {
	list, err := f.Client().Pods(f.Ctx())
	if err == nil && len(list.Items) > 0 {
		err = fmt.Errorf("%d pods exist", len(list.Items))
	}
	links, linksErr := f.PodLinks()
	elements, elementsErr := f.Elements()
	var leases struct{ Leases map[string]any }
	text, leasesErr := os.ReadFile(filepath.Join(f.RunDir(), "network.json"))
	if leasesErr == nil {
		leasesErr = json.Unmarshal(text, &leases)
	}
	if len(links)+len(elements)+len(leases.Leases) > 0 {
		err = errors.Join(err, fmt.Errorf("links %v, elements %v, leases %v", links, elements, leases.Leases))
	}
	return errors.Join(err, linksErr, elementsErr, leasesErr)
}

// files returns the paths of all files of the rig's state, except image content.
func (f *fixture) files() (paths []string) {
	f.Helper()
	for _, dir := range []string{f.StateDir(), f.RunDir(), f.LogDir()} {
		f.Check(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case path == filepath.Join(f.StateDir(), "engine", "io.containerd.content.v1.content"):
				return filepath.SkipDir
			}
			paths = append(paths, path)
			return nil
		}))
	}
	return paths
}

// descriptors returns the number of open descriptors of the daemon.
func (f *fixture) descriptors() int {
	f.Helper()
	pid, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	f.Check(err)
	return len(entries)
}
