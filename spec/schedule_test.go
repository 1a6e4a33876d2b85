package spec

import (
	"strings"
	"testing"
	"time"
)

const nightly = "restartPolicy = \"Never\"\nschedule = { cron = \"0 3 * * *\"%s }\n[[containers]]\nname = \"a\"\nimage = \"b\"\n"

// scheduled returns a pod file with more fields of a schedule.
func scheduled(fields string) string { return strings.Replace(nightly, "%s", fields, 1) }

func TestScheduleProblems(t *testing.T) {
	for _, tc := range []struct{ name, text, path, want string }{
		{"no times", strings.Replace(scheduled(""), `cron = "0 3 * * *"`, "suspend = true", 1), "schedule.cron", "Required value"},
		{"times", strings.Replace(scheduled(""), "0 3", "0 24", 1), "schedule.cron", `Invalid value: "0 24 * * *": `},
		{"a date that no year has", strings.Replace(scheduled(""), "0 3 * * *", "0 3 30 2 *", 1), "schedule.cron", "matches no time"},
		{"time zone", scheduled(`, timeZone = "Mars/Olympus"`), "schedule.timeZone", "unknown time zone Mars/Olympus"},
		{"no time zone", scheduled(`, timeZone = ""`), "schedule.timeZone", "must not be empty"},
		{"policy", scheduled(`, concurrencyPolicy = "Never"`), "schedule.concurrencyPolicy", `values: "Allow", "Forbid", "Replace"`},
		{"jitter", scheduled(`, jitterSeconds = 86401`), "schedule.jitterSeconds", "less than or equal to 86400"},
		{"deadline", scheduled(`, startingDeadlineSeconds = -1`), "schedule.startingDeadlineSeconds", "greater than or equal to 0"},
		{"no deadline", scheduled(`, startingDeadlineSeconds = 0`), "schedule.startingDeadlineSeconds", "greater than or equal to 1"},
		{"short deadline", scheduled(`, startingDeadlineSeconds = 0.9`), "schedule.startingDeadlineSeconds", "greater than or equal to 1"},
		{"history", scheduled(`, successfulJobsHistoryLimit = 366`), "schedule.successfulJobsHistoryLimit", "between 0 and 365"},
		{"history of failures", scheduled(`, failedJobsHistoryLimit = -1`), "schedule.failedJobsHistoryLimit", "between 0 and 365"},
		{"unknown field", scheduled(`, timezone = "UTC"`), "schedule.timezone", "unknown field"},
		{"restart policy", strings.Replace(scheduled(""), "Never", "Always", 1), "schedule", `requires restartPolicy "OnFailure" or`},
		{"name", "name = \"" + strings.Repeat("a", 53) + "\"\n" + scheduled(""), "schedule", "no more than 52 characters"},
		{"update", "update = {}\n" + scheduled(""), "update", "must not be set with schedule"},
		{"unit", "systemd = {}\n" + scheduled(""), "systemd", "must not be set with schedule"},
	} {
		pod, problems := Parse("backup.toml", []byte(tc.text))
		if pod != nil || len(problems) != 1 || problems[0].Path != tc.path || problems[0].Line == 0 ||
			!strings.Contains(problems[0].Message, tc.want) {
			t.Errorf("%s: %v, want %s: %s", tc.name, problems, tc.path, tc.want)
		}
	}
}

// TestRun: a run has the definition of its pod without the schedule, and a name of its own.
func TestRun(t *testing.T) {
	p, problems := Parse("backup.toml", []byte("labels.app = \"shop\"\nannotations.a = \"1\"\n"+scheduled("")))
	if p == nil {
		t.Fatal(problems)
	}
	at := time.Date(2026, 11, 30, 2, 0, 59, 0, time.UTC)
	run, manual := p.Run(at, false), p.Run(at, true)
	if run.Name != "backup-29933400" || manual.Name != "backup-manual-1796004059" {
		t.Errorf("names: %s, %s", run.Name, manual.Name)
	}
	for _, r := range []*Pod{run, manual} {
		if r.Schedule != nil || r.Labels[LabelSchedule] != "backup" || r.Labels["app"] != "shop" || r.Annotations["a"] != "1" ||
			r.Hash != p.Hash || len(r.Containers) != 1 {
			t.Errorf("%+v", r)
		}
	}
	if run.Annotations[annotationScheduledFor] != "2026-11-30T02:00:59Z" || manual.Annotations[annotationManual] != "manual" {
		t.Errorf("annotations: %v, %v", run.Annotations, manual.Annotations)
	}
	if p.Schedule == nil || p.Name != "backup" || len(p.Labels) != 1 || len(p.Annotations) != 1 {
		t.Errorf("the pod was changed: %+v", p)
	}
}

func TestScheduleDefaults(t *testing.T) {
	zero := int32(0)
	var s Schedule
	if successful, failed := s.History(); successful != 3 || failed != 1 || s.Policy() != ConcurrencyAllow {
		t.Errorf("defaults: %d, %d, %s", successful, failed, s.Policy())
	}
	s = Schedule{SuccessfulJobsHistoryLimit: &zero, FailedJobsHistoryLimit: &zero, ConcurrencyPolicy: ConcurrencyForbid}
	if successful, failed := s.History(); successful != 0 || failed != 0 || s.Policy() != ConcurrencyForbid {
		t.Errorf("none: %d, %d, %s", successful, failed, s.Policy())
	}
}
