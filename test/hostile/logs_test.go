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

// forged is a line of a file of the host that `logs` must not show.
const forged = "2026-01-02T03:04:05.000000000Z stdout F " + secret + "\n"

// saboteur is a container that has the directory of logs at /logs. Its first run executes a script, in which $d is its own directory of
// logs. Its second run writes to its log.
func saboteur(name, script string) string {
	return fmt.Sprintf(`
[[containers]]
name = %q
image = %q
command = ["sh", "-c", %q]
securityContext = { privileged = true }
volumeMounts = { logs = "/logs", marks = "/marks" }
`, name, Intruder, fmt.Sprintf(`if mkdir /marks/%[1]s; then d=$(echo /logs/saboteur_*/%[1]s); cd $d && %[2]s; exit $?; fi
echo "* * * * * root intruder"; touch /marks/%[1]s/written; exec sleep 1000`, name, script))
}

// TestLogFileReplaced: a container that can write to the directory of logs replaces its next log. Nothing is written elsewhere, no
// container is blocked, and the pod can be deleted. Only a privileged container can do that, see TestStateVolumes.
func TestLogFileReplaced(t *testing.T) {
	f := newFixture(t, options{})
	containers := map[string]string{
		"link":      "ln -s " + f.victim() + "/a 1.log",
		"dangling":  "ln -s " + f.victim() + "/new 1.log",
		"hard":      "ln $(echo /logs/neighbour_*/c/0.log) 1.log",
		"fifo":      "mkfifo 1.log",
		"directory": "mkdir -p 1.log/full",
		"mode":      "chmod 777 .",
		"moved":     "cd / && mv $d $d.old && ln -s " + f.victim() + "/deep $d",
	}
	text := "restartBackoff = { initialSeconds = 0.1 }\n"
	for name, script := range containers {
		text += saboteur(name, script)
	}
	f.create("saboteur", text+fmt.Sprintf(`
[[volumes]]
name = "logs"
hostPath = { path = %q }
[[volumes]]
name = "marks"
emptyDir = {}
`, f.LogDir()))
	p := f.Until("saboteur", "restarted", func(p *api.Pod) bool {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running == nil || c.RestartCount == 0 {
				return false
			}
		}
		return len(p.Status.ContainerStatuses) == len(containers)
	})
	for name := range containers {
		f.Await(func() error { // it was not blocked by its log
			_, err := os.Stat(filepath.Join(f.StateDir(), "pods", p.Metadata.UID, "volumes", "marks", name, "written"))
			return err
		})
	}
	if log := f.MustRun("logs", neighbour); strings.Contains(log, "intruder") {
		f.Errorf("the neighbour's log has a line of another container:\n%s", log)
	}
	f.MustRun("delete", "saboteur")
}

// TestLogFileRead: a container replaces its log by a link to a file of the host, which no command shows.
func TestLogFileRead(t *testing.T) {
	f := newFixture(t, options{})
	file := filepath.Join(f.Dir, "forged")
	f.Check(os.WriteFile(file, []byte(forged), 0o600))
	f.Check(os.Mkdir(filepath.Join(f.Dir, "other"), 0o755)) // like the directory of a container
	f.Check(os.WriteFile(filepath.Join(f.Dir, "other", "0.log"), []byte(forged), 0o600))
	containers := map[string]string{
		"link":    "rm 0.log && ln -s " + file + " 0.log",
		"rotated": "ln -s " + file + " 0.log.1",
		"fifo":    "rm 0.log && mkfifo 0.log",
		"moved":   "cd / && mv $d $d.old && ln -s " + f.Dir + "/other $d",
	}
	text := "restartPolicy = \"Never\"\n"
	for name, script := range containers {
		text += saboteur(name, script+" && exit 3") + "terminationMessagePolicy = \"FallbackToLogsOnError\"\n"
	}
	f.create("saboteur",
		text+
			fmt.Sprintf("[[volumes]]\nname = \"logs\"\nhostPath = { path = %q }\n[[volumes]]\nname = \"marks\"\nemptyDir = {}\n",
				f.LogDir()))
	p := f.Until("saboteur", "done", ended)
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end == nil || end.ExitCode != 3 {
			f.Errorf("container %s: %+v", c.Name, c.State)
		}
	}
	for _, command := range [][]string{
		{"logs", "saboteur", "-c", "link"},
		{"logs", "saboteur", "-c", "rotated"},
		{"logs", "saboteur", "-c", "fifo"},
		{"logs", "saboteur", "-c", "moved"},
		{"why", "saboteur"},
		{"get", "saboteur", "-o", "json"},
		{"events", "saboteur"},
	} {
		if out, err := f.Podstead(f.Ctx(), command...); strings.Contains(out+fmt.Sprint(err), secret) {
			f.Errorf("podstead %v shows a file of the host:\n%s", command, out)
		}
	}
	f.MustRun("delete", "saboteur")
}

// TestStateVolumes: a container that is not privileged cannot mount a directory that overlaps one of the daemon's, also through links.
// Other directories beside them can be mounted.
func TestStateVolumes(t *testing.T) {
	f := newFixture(t, options{})
	for link, target := range map[string]string{"logs": f.LogDir(), "up": f.Dir, "state": f.StateDir() + "/pods", "run": f.RunDir()} {
		f.Check(os.MkdirAll(filepath.Join(f.Dir, "links"), 0o755))
		f.Check(os.Symlink(target, filepath.Join(f.Dir, "links", link)))
	}
	volume := func(path string) string {
		return "restartPolicy = \"Never\"\n" + Play("c", "try", "list /host") + "volumeMounts = { host = \"/host\" }\n" +
			fmt.Sprintf("[[volumes]]\nname = \"host\"\nhostPath = { path = %q }\n", path)
	}
	for _, path := range []string{f.StateDir(), f.StateDir() + "/pods", f.RunDir(), f.Socket(), f.LogDir(), f.Dir, "/"} {
		if _, err := f.Create(f.Ctx(), "mounter", f.PodText("mounter", volume(path))); err == nil ||
			!strings.Contains(err.Error(), "only privileged containers can mount it") {
			f.Errorf("hostPath %s: %v", path, err)
		}
	}
	for _, link := range []string{"logs", "up", "state", "run"} {
		f.create("mounter-"+link, volume(filepath.Join(f.Dir, "links", link)))
	}
	for _, link := range []string{"logs", "up", "state", "run"} {
		f.Await(func() error {
			if events := f.MustRun("events", "mounter-"+link); !strings.Contains(events, "only privileged containers can mount it") {
				return fmt.Errorf("link %s: %s", link, events)
			}
			return nil
		})
		f.MustRun("delete", "mounter-"+link)
	}
	f.create("beside", volume(filepath.Join(f.Dir, "links")))
	f.Until("beside", "done", ended)
	f.compare("beside", "c", []Try{{"list /host", "4 entries"}})
	f.MustRun("delete", "beside")
}
