package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/record"
)

// TestPodsOfOtherDaemons: a pod belongs to this runtime if it has something in the directories of its own. The log directory may be that of
// other daemons as well, whose pods must not be removed.
func TestPodsOfOtherDaemons(t *testing.T) {
	const uid = "61094fd3-44b0-4214-b0b2-7a51721841c9"
	for name, test := range map[string]struct {
		dir  func(record.Dirs) string
		ours bool
	}{
		"nothing":        {func(d record.Dirs) string { return d.Log }, false},
		"logs":           {func(d record.Dirs) string { return d.PodLogs(uid, "web") }, false},
		"logs in memory": {func(d record.Dirs) string { return d.InMemory().PodLogs(uid, "web") }, true},
		"volumes":        {func(d record.Dirs) string { return d.Pod(uid) }, true},
		"namespaces":     {func(d record.Dirs) string { return d.Sandbox(uid, 1) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			r := &Runtime{dirs: record.Dirs{
				State: filepath.Join(base, "state"), Run: filepath.Join(base, "run"), Log: filepath.Join(base, "log"),
			}}
			if err := os.MkdirAll(test.dir(r.dirs), 0o700); err != nil {
				t.Fatal(err)
			}
			if got := r.hasFiles(uid); got != test.ours {
				t.Errorf("belongs to this runtime: %v, want %v", got, test.ours)
			}
		})
	}
}
