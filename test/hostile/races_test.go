//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestLinksAreSwapped: while a container swaps folders of a shared volume against links to a folder of the machine, pods with
// subPaths and mount points in those folders come and go. The folder of the machine is neither mounted, nor written to, nor
// removed, and no file of it is read.
func TestLinksAreSwapped(t *testing.T) {
	f := newFixture(t, options{})
	const volumes = `
[[volumes]]
name = "shared"
persistentVolumeClaim = { claimName = "shared" }
[[volumes]]
name = "conf"
configMap = { name = "conf" }
[[configMaps]]
name = "conf"
data = { key = "value" }
`
	swaps := []string{"swap /shared/a " + f.victim(), "swap /shared/b/c " + f.victim(), "swap /shared/d " + f.victim() + "/deep"}
	f.create("swapper", play("c", "stay", swaps...)+"volumeMounts = { shared = \"/shared\" }\n"+volumes)
	f.outcomes("swapper", "c")
	for n := range 12 {
		name := fmt.Sprint("guest", n)
		f.create(name, "restartPolicy = \"Never\"\n"+play("c", "try", "find / deeper", "read /sub/a", "fill /sub/written 1")+`
volumeMounts = [
  { name = "shared", mountPath = "/shared" },
  { name = "shared", mountPath = "/sub", subPath = "a" },
  { name = "shared", mountPath = "/deep", subPath = "b/c/made" },
  { name = "conf", mountPath = "/shared/d/conf" },
]
`+volumes)
		f.Until(name, "done or refused", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses
			return ended(p) || len(c) > 0 && c[0].State.Waiting != nil && c[0].State.Waiting.Message != ""
		})
		logs, _ := f.Podstead(f.Ctx(), "logs", name) // a container that was refused has none
		if strings.Contains(logs, "deeper:") && !strings.Contains(logs, "find / deeper: nothing") {
			f.Errorf("%s found the folder of the machine: %s", name, logs)
		}
		f.MustRun("delete", name, "--force")
	}
	f.MustRun("delete", "swapper")
	f.MustRun("volume", "rm", "shared")
}

// TestLinksAreLeft: what a pod leaves in its volumes, and swaps to the end, is removed with it, and nothing that its links lead to.
func TestLinksAreLeft(t *testing.T) {
	f := newFixture(t, options{})
	for n := range 3 {
		name := fmt.Sprint("leaver", n)
		f.create(name, play("c", "stay", "deepen /data/deep 700", "symlink "+f.victim()+" /data/link", "symlink / /data/root", "setuid /data/suid",
			"swap /data/a "+f.victim(), "swap /data/b/c "+f.victim()+"/deep", "swap /data/d "+filepath.Dir(f.Dir))+
			"volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n")
		f.Until(name, "ready", isReady)
		f.outcomes(name, "c")
		f.MustRun("delete", name, "--force")
	}
}

// TestProgramsOfVolumes: a program that a container leaves in a volume with the bit that makes it run as root lies where nobody but
// root of the machine gets to.
func TestProgramsOfVolumes(t *testing.T) {
	f := newFixture(t, options{})
	f.create("smuggler", play("c", "stay", "setuid /data/suid", "setuid /claim/suid", "setuid /tmp/suid")+
		"volumeMounts = { data = \"/data\", claim = \"/claim\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n"+
		"[[volumes]]\nname = \"claim\"\npersistentVolumeClaim = { claimName = \"claim\" }\n")
	f.outcomes("smuggler", "c")
	found := 0
	f.Check(filepath.WalkDir(f.StateDir(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "suid" {
			return err
		}
		found++
		if open := f.openTo(path); open {
			f.Errorf("everybody can run %s", path)
		}
		return nil
	}))
	if found < 3 {
		f.Errorf("%d of the programs were found, want 3", found)
	}
	f.MustRun("delete", "smuggler")
	f.MustRun("volume", "rm", "claim")
}

// openTo reports whether all folders on the way to a path below the rig's can be gone through by everybody.
func (f *fixture) openTo(path string) bool {
	f.Helper()
	for dir := filepath.Dir(path); dir != f.Dir; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		f.Check(err)
		if info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}
