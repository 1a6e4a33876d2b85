//go:build e2e

package systemd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/podstead/podstead/test/transcript"
)

var (
	// nginxImage is the image in the page. The pod of the test writes the lines that the page shows, and fails.
	nginxImage = strings.NewReplacer(`image = "docker.io/library/nginx:1.27"`, `image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo GET / 200; echo GET /health 200; sleep 1; echo connect to database: connection refused >&2; exit 1"]`,
		"IMAGE_NAME=docker.io/library/nginx:1.27", "IMAGE_NAME=localhost/podstead/busybox:1")

	// journalEntry is the start of a line of journalctl, droppedLines a number of lines for which there was no room, and containerID the
	// argument of a match.
	journalEntry = regexp.MustCompile(`(?m)^\w{3} \d\d [\d:]{8} \S+ (\S+)\[\d+\]:`)
	droppedLines = regexp.MustCompile(`\d+ lines dropped`)
	containerID  = regexp.MustCompile(`CONTAINER_ID=\w+`)
)

// page runs the commands of the page about journald, and compares their output with the page.
func (j *journal) page() {
	j.Helper()
	text, err := os.ReadFile("../../docs/howto/use-journald.md")
	if err != nil {
		j.Fatal(err)
	}
	steps, err := transcript.Parse(string(text), "journalctl")
	if err != nil || len(steps) < 15 {
		j.Fatalf("%d steps, %v", len(steps), err)
	}
	for i := range steps {
		step := &steps[i]
		if step.File != "" {
			j.Sh("mkdir -p " + filepath.Dir(step.File))
			archives := strings.Repeat("imageArchives = [\"/var/lib/images/busybox.tar\"]\n", strings.Count(step.Text, "image = "))
			j.write(step.File, archives+nginxImage.Replace(step.Text))
			continue
		}
		if err := j.step(step); err != nil {
			j.Errorf("use-journald.md:%d: %s: %v", step.Line, step.Command, err)
		}
	}
}

// step runs a command until its first lines are those of the page, and anything if the page shows no output. A command that follows is
// interrupted.
func (j *journal) step(step *transcript.Step) error {
	command := containerID.ReplaceAllStringFunc(nginxImage.Replace(step.Command), func(string) string {
		return "CONTAINER_ID=" + strings.Fields(j.Sh("journalctl -o cat --output-fields=CONTAINER_ID CONTAINER_NAME=web-nginx"))[0]
	})
	if strings.Contains(command, " -f ") {
		command = "timeout 2 " + command + " || [ $? = 124 ]"
	}
	plain := func(text string) string {
		return droppedLines.ReplaceAllString(journalEntry.ReplaceAllString(text, "DATE HOST $1[N]:"), "N lines dropped")
	}
	for end := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		out, err := j.Try("journalctl --sync; " + command)
		switch {
		case err != nil:
			err = fmt.Errorf("%w: %s", err, out)
		case len(step.Output) > 0:
			err = transcript.Compare(strings.Split(plain(strings.Join(step.Output, "\n")), "\n"), plain(out), true)
		case strings.HasPrefix(command, "journalctl ") && !strings.HasSuffix(command, "catalog") && !journalEntry.MatchString(out):
			err = fmt.Errorf("no entry: %s", out)
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
