//go:build e2e

package hostile

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiskExhausted: a container can fill the disk of its writable layer, volumes and pod files, because there is no quota. No other
// container stops or restarts, the daemon responds, and deleting the pod frees the space.
func TestDiskExhausted(t *testing.T) {
	f := newFixture(t, options{disk: "size=64m"})
	f.create("filler", Play("c", "stay", "fill /data/big 200", "fill /tmp/big 200", "fill /etc/hosts 200", "fill /dev/termination-log 200")+
		"volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n")
	f.Until("filler", "ready", isReady)
	f.compare("filler", "c", []Try{
		{"fill /data/big 200", "ENOSPC"},
		{"fill /tmp/big 200", "ENOSPC"},
		{"fill /dev/termination-log 200", "ENOSPC"},
	})
	if _, err := f.ask("/whoami"); err != nil {
		f.Error(err)
	}
	f.MustRun("get")
	f.MustRun("delete", "filler")
	f.create("next", Play("c", "stay", "fill /tmp/small 1")) // there is space again
	f.Until("next", "ready", isReady)
	f.compare("next", "c", []Try{{"fill /tmp/small 1", "done"}})
}

// TestInodesExhausted: the same with the inodes of the disk.
func TestInodesExhausted(t *testing.T) {
	f := newFixture(t, options{disk: "size=64m,nr_inodes=1500"})
	f.create("maker", Play("c", "stay", "inodes /tmp/many 100000"))
	f.Until("maker", "ready", isReady)
	f.compare("maker", "c", []Try{{"inodes /tmp/many 100000", "ENOSPC"}})
	f.MustRun("delete", "maker")
	f.create("next", Play("c", "stay", "inodes /tmp/few 10"))
	f.Until("next", "ready", isReady)
	f.compare("next", "c", []Try{{"inodes /tmp/few 10", "done"}})
}

// TestVolumeSizeLimit: a pod is evicted if an emptyDir exceeds its sizeLimit, however deep its files are, and if it has too many empty
// files. One in memory cannot exceed it.
func TestVolumeSizeLimit(t *testing.T) {
	f := newFixture(t, options{})
	const limited = "volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = { sizeLimit = \"8Mi\" }\n"
	f.create("plain", Play("c", "stay", "fill /data/big 20")+limited)
	f.create("deep", Play("c", "stay", "nest /data 1500", "fill /data/d/big 20")+limited)
	f.create("many", Play("c", "stay", "inodes /data/many 3000")+limited)
	for _, name := range []string{"plain", "deep", "many"} {
		p := f.Until(name, "evicted", ended)
		if p.Status.Phase != "Failed" || p.Status.Reason != "Evicted" {
			f.Errorf("pod %s is %s (%s)", name, p.Status.Phase, p.Status.Reason)
		}
	}
	f.intrude("memory",
		"volumeMounts = { data = \"/data\" }\n[[volumes]]\nname = \"data\"\nemptyDir = { medium = \"Memory\", sizeLimit = \"8Mi\" }\n",
		[]Try{
			{"inodes /data/many 3000", "ENOSPC"},
			{"remove /data/many/1", "done"}, // directories need an inode too
			{"fill /data/big 20", "ENOSPC"},
			{"fill /dev/shm/big 100", "ENOSPC"},
		})
}

// TestLogSizeLimit: the log of a container does not exceed its limit, even with endless lines.
func TestLogSizeLimit(t *testing.T) {
	const size, files = 1 << 20, 3
	f := newFixture(t,
		options{env: []string{"PODSTEAD_CONTAINER_LOG_MAX_SIZE=1Mi", fmt.Sprint("PODSTEAD_CONTAINER_LOG_MAX_FILES=", files)}})
	f.create("flood", Play("c", "stay", "write-log 10 80", "write-log 10 4000000", "write-log 2 1"))
	f.outcomes("flood", "c")
	var total, count int64
	f.Check(filepath.WalkDir(f.LogDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "flood_") {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total, count = total+info.Size(), count+1
		}
		return err
	}))
	if total > files*size || count > files {
		f.Errorf("the log has %d bytes in %d files, want at most %d files of %d bytes", total, count, files, size)
	}
	f.MustRun("delete", "flood")
}

// TestForkBomb: a pod cannot exceed the number of processes that pods.pidsLimit sets. Deleting the pod kills them all.
func TestForkBomb(t *testing.T) {
	f := newFixture(t, options{env: []string{"PODSTEAD_PODS_PIDS_LIMIT=200"}})
	f.create("bomb", Play("c", "stay", "fork 5000 20"))
	f.Until("bomb", "ready", isReady)
	f.compare("bomb", "c", []Try{{"fork 5000 20", "EAGAIN"}})
	if _, err := f.ask("/whoami"); err != nil {
		f.Error(err)
	}
	f.MustRun("delete", "bomb")
}

// TestMemoryLimit: a container that exceeds its memory limit is killed, and no other.
func TestMemoryLimit(t *testing.T) {
	f := newFixture(t, options{})
	f.create("eater", "restartPolicy = \"Never\"\n"+Play("c", "try", "allocate 400")+"resources = { limits = { memory = \"64Mi\" } }\n")
	end := f.Until("eater", "done", ended).Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.ExitCode != 137 || end.Reason != "OOMKilled" {
		f.Errorf("terminated with %+v", end)
	}
	f.MustRun("delete", "eater")
}
