//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// nights is how many nights the history of the night job has.
const nights = 7

// The night job: pg_dump of the database of another pod. Its times are CRON.
const (
	nightDatabase = `name = "db"
terminationGracePeriodSeconds = 2
[[containers]]
name = "postgres"
image = "localhost/stack:1"
imagePullPolicy = "Never"
args = ["db"]
readinessProbe = { exec = ["pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"], periodSeconds = 1, timeoutSeconds = 10 }
volumeMounts.data = "/data"
[[volumes]]
name = "data"
emptyDir = {}
`
	nightScript = "/usr/lib/postgresql/*/bin/pg_dump -h db -U postgres postgres >/dumps/last.sql && " +
		"echo dumped $(grep -c 'CREATE TABLE' /dumps/last.sql) table"
	nightPodFile = `name = "nightly"
restartPolicy = "Never"
backoffLimit = 1
schedule = { cron = "CRON", timeZone = "UTC", successfulJobsHistoryLimit = 7, failedJobsHistoryLimit = 1 }
[[containers]]
name = "dump"
image = "localhost/stack:1"
imagePullPolicy = "Never"
command = ["sh", "-c", "` + nightScript + `"]
volumeMounts.dumps = "/dumps"
[[volumes]]
name = "dumps"
persistentVolumeClaim.claimName = "dumps"
`
	nightCronJob = `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  schedule: "CRON"
  timeZone: UTC
  successfulJobsHistoryLimit: 7
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 1
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: dump
            image: localhost/stack:1
            imagePullPolicy: Never
            command: [sh, -c, "` + nightScript + `"]
            volumeMounts: [{name: dumps, mountPath: /dumps}]
          volumes: [{name: dumps, persistentVolumeClaim: {claimName: dumps}}]
`
)

// TestNightJob runs pg_dump on a schedule, from a pod file and from a CronJob. It has the logs of seven nights, reports the night that was
// missed, and fails after the retries of a night without the database. A night passes while no daemon runs: the saved time of the schedule
// is set back. The nights are those of the previous month.
func TestNightJob(t *testing.T) {
	f := newStackFixture(t)
	for _, file := range []struct{ name, text string }{{"nightly.toml", nightPodFile}, {"nightly.yaml", nightCronJob}} {
		t.Run(file.name, func(t *testing.T) {
			j := &nightJob{fixture: &fixture{f.Of(t)}, text: file.text}
			j.file = filepath.Join(j.Dir, file.name)
			j.run()
		})
	}
	if !t.Failed() {
		f.MustRun("image", "rm", "localhost/stack:1")
	}
}

// nightJob is a job and its file.
type nightJob struct {
	*fixture
	file, text string
}

func (j *nightJob) run() {
	j.Helper()
	database := filepath.Join(j.Dir, "db.toml")
	j.Check(os.WriteFile(database, []byte(nightDatabase), 0o600))
	j.MustRun("apply", database, "--wait", "--timeout", stackDeadline.String())
	j.MustRun("exec", "db", "--", "psql", "-h", "127.0.0.1", "-U", "postgres", "-c", "CREATE TABLE shop (id int)")
	missed := j.missed() // the events of an earlier pod of the name are kept
	var names []string
	for night := 1; night <= nights; night++ {
		names = append(names, j.night(night, "Completed"))
	}
	if n := j.missed() - missed; n != 1 {
		j.Errorf("one night was missed, %d are reported:\n%s", n, j.MustRun("events", "nightly"))
	}
	j.MustRun("stop", "db")
	failed := j.night(nights+1, "Error")
	if why := j.MustRun("why", failed); !strings.Contains(why, "failed (BackoffLimitExceeded)") || !strings.Contains(why, "Restarts: 1.") {
		j.Errorf("a night without the database:\n%s", why)
	}
	j.MustRun("start", "db", "--wait")
	names = append(names[1:], j.night(nights+2, "Completed")) // the history has seven nights
	var runs map[string]string
	j.Await(func() error {
		if runs = j.runs(); len(runs) != nights+1 || runs[failed] != "Error" {
			return fmt.Errorf("runs: %v, want %d that succeeded and %s", runs, nights, failed)
		}
		return nil
	})
	for _, name := range names {
		if log := j.MustRun("logs", name); runs[name] != "Completed" || log != "dumped 1 table\n" {
			j.Errorf("run %s: %q with the log %q", name, runs[name], log)
		}
	}
	j.MustRun("delete", "nightly", "db")
	j.Await(func() error {
		if left := j.MustRun("get", "--no-headers"); left != "" {
			return fmt.Errorf("pods are left:\n%s", left)
		}
		return nil
	})
	j.MustRun("volume", "rm", "dumps")
}

// missed returns how many events there are about nights that were missed.
func (j *nightJob) missed() int {
	j.Helper()
	out, err := j.Podstead(j.Ctx(), "events", "nightly")
	if err != nil { // there is no such pod yet
		return 0
	}
	return strings.Count(out, "Missed scheduled time to start a run: ")
}

// night lets a night pass without a daemon, the first time two. It returns the name of the run of the night, which has finished with a
// status.
func (j *nightJob) night(night int, status string) string {
	j.Helper()
	before := j.runs()
	now := time.Now().UTC()
	since := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	cron := fmt.Sprintf("0 3 %d,%d %d *", night+1, night+2, since.Month())
	j.Check(os.WriteFile(j.file, []byte(strings.Replace(j.text, "CRON", cron, 1)), 0o600))
	j.MustRun("apply", j.file)
	state := filepath.Join(j.StateDir(), "schedules", "nightly.json")
	j.Await(func() error { return contains(state, `"cron":"`+cron+`"`) })
	j.MustKillDaemon()
	text, err := os.ReadFile(state)
	j.Check(err)
	for pattern, with := range map[string]string{
		`"since":"[^"]*"`: `"since":"` + since.Format(time.RFC3339) + `"`, `,"_sum":"[0-9a-f]*"`: "",
	} {
		re := regexp.MustCompile(pattern)
		if n := len(re.FindAll(text, -1)); n != 1 {
			j.Fatalf("%s has %s %d times:\n%s", state, pattern, n, text)
		}
		text = re.ReplaceAll(text, []byte(with))
	}
	j.Check(os.WriteFile(state, text, 0o600))
	name := ""
	j.Await(func() error {
		runs := j.runs()
		for run := range runs {
			if _, old := before[run]; !old {
				name = run
			}
		}
		if runs[name] != status {
			return fmt.Errorf("run %q of %s has not finished with %s: %v", name, cron, status, runs)
		}
		return nil
	})
	return name
}

// runs returns the statuses of the runs, by name.
func (j *nightJob) runs() map[string]string {
	j.Helper()
	runs := map[string]string{}
	for line := range strings.Lines(j.MustRun("get", "-l", "podstead.io/schedule=nightly", "--no-headers")) {
		if fields := strings.Fields(line); len(fields) > 2 && !slices.Contains(fields, "NAME") {
			runs[fields[0]] = fields[2]
		}
	}
	return runs
}

// contains returns an error unless a file has a text.
func contains(path, text string) error {
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), text) {
		err = fmt.Errorf("%s has no %s:\n%s", path, text, data)
	}
	return err
}
