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

// TestSymlinkRace: while a container swaps directories of a shared volume with symbolic links to a directory of the host, pods with
// subPaths and mount points in those directories start and stop. The host directory is neither mounted, written to nor removed, and none
// of its files is read.
func TestSymlinkRace(t *testing.T) {
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
	f.create("swapper", Play("c", "stay", swaps...)+"volumeMounts = { shared = \"/shared\" }\n"+volumes)
	f.outcomes("swapper", "c")
	for n := range 12 {
		name := fmt.Sprint("guest", n)
		f.create(name, "restartPolicy = \"Never\"\n"+Play("c", "try", "find / deeper", "read /sub/a", "fill /sub/written 1")+`
volumeMounts = [
  { name = "shared", mountPath = "/shared" },
  { name = "shared", mountPath = "/sub", subPath = "a" },
  { name = "shared", mountPath = "/deep", subPath = "b/c/made" },
  { name = "conf", mountPath = "/shared/d/conf" },
]
`+volumes)
		f.Until(name, "done or failed to start", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses
			return ended(p) || len(c) > 0 && c[0].State.Waiting != nil && c[0].State.Waiting.Message != ""
		})
		logs, _ := f.Podstead(f.Ctx(), "logs", name) // a container that did not start has none
		if strings.Contains(logs, "deeper:") && !strings.Contains(logs, "find / deeper: nothing") {
			f.Errorf("%s found the directory of the host: %s", name, logs)
		}
		f.MustRun("delete", name, "--force")
	}
	f.MustRun("delete", "swapper")
	f.MustRun("volume", "rm", "shared")
}

// TestVolumeCleanup: what a pod leaves in its volumes, while it still swaps links, is removed with it. The targets of its links are not.
func TestVolumeCleanup(t *testing.T) {
	f := newFixture(t, options{})
	for n := range 3 {
		name := fmt.Sprint("leaver", n)
		f.create(name,
			Play("c", "stay", "nest /data/deep 700", "symlink "+f.victim()+" /data/link", "symlink / /data/root", "setuid /data/suid",
				"swap /data/a "+f.victim(), "swap /data/b/c "+f.victim()+"/deep", "swap /data/d "+filepath.Dir(f.Dir))+
				"volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n")
		f.Until(name, "ready", isReady)
		f.outcomes(name, "c")
		f.MustRun("delete", name, "--force")
	}
}

// TestSetuidFilesInVolumes: a setuid program that a container leaves in a volume is in a directory that only root of the host can enter.
func TestSetuidFilesInVolumes(t *testing.T) {
	f := newFixture(t, options{})
	f.create("smuggler", Play("c", "stay", "setuid /data/suid", "setuid /claim/suid", "setuid /tmp/suid")+
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
			f.Errorf("%s can be executed by everybody", path)
		}
		return nil
	}))
	if found < 3 {
		f.Errorf("found %d programs, want 3", found)
	}
	f.MustRun("delete", "smuggler")
	f.MustRun("volume", "rm", "claim")
}

// openTo reports whether everybody can enter all directories that lead to a path below the rig's directory.
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
