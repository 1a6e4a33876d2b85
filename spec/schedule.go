package spec

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec/calendar"
)

// Schedule starts the pod at times. Each run is a pod of its own, with the name of the pod and a number. The fields are those of a CronJob.
type Schedule struct {
	// Times: minute, hour, day of the month, month and day of the week, such as `0 3 * * *` for each night at 3, or `@hourly`, `@daily`,
	// `@weekly`, `@monthly`, `@yearly`. If both the day of the month and of the week are set, either is enough. Required.
	Cron string `json:"cron"`
	// Time zone of `cron`, such as `Europe/Berlin`. Default: that of the host.
	TimeZone string `json:"timeZone,omitempty"`
	// What happens if it is time for a run while an earlier one is running: `Allow` starts it, `Forbid` waits for the earlier one,
	// `Replace` deletes the earlier one. Default: `Allow`.
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Time after which a run that could not start is missed, because the host was off or an earlier run was running, at least 1. Default:
	// no limit, the newest of such runs starts.
	StartingDeadlineSeconds *Seconds `json:"startingDeadlineSeconds,omitempty"`
	// Start no runs. Those that are running continue. Default: false.
	Suspend bool `json:"suspend,omitempty"`
	// Maximum delay of a run, at most 86400. The delay is the same for each run of the pod on this host, and differs between hosts.
	// Default: 0.
	JitterSeconds Seconds `json:"jitterSeconds,omitempty"`
	// How many runs that succeeded are kept with their logs, from 0 to 365. Default: 3.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// How many runs that failed are kept with their logs, from 0 to 365. Default: 1.
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// ConcurrencyPolicy tells what happens if it is time for a run while an earlier one is running.
type ConcurrencyPolicy string

// The concurrency policies.
const (
	ConcurrencyAllow   ConcurrencyPolicy = "Allow"
	ConcurrencyForbid  ConcurrencyPolicy = "Forbid"
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

const (
	maxHistory             int32   = 365
	maxJitter              Seconds = 24 * 60 * 60
	minDeadline            Seconds = 1  // no run starts at the very moment of its time
	maxScheduledName               = 52 // of a CronJob: 11 characters follow in the names of its runs
	defaultHistory         int32   = 3
	defaultFailedHistory   int32   = 1
	manualRun                      = "-manual-"
	annotationScheduledFor         = "batch.kubernetes.io/cronjob-scheduled-timestamp"
	annotationManual               = "cronjob.kubernetes.io/instantiate"
)

// LabelSchedule has the name of the pod with the schedule that started a pod.
const LabelSchedule = "podstead.io/schedule"

// History returns how many runs are kept of those that succeeded, and of those that failed.
func (s *Schedule) History() (successful, failed int) {
	limit := func(n *int32, otherwise int32) int {
		if n == nil {
			return int(otherwise)
		}
		return int(*n)
	}
	return limit(s.SuccessfulJobsHistoryLimit, defaultHistory), limit(s.FailedJobsHistoryLimit, defaultFailedHistory)
}

// Policy returns the concurrency policy.
func (s *Schedule) Policy() ConcurrencyPolicy { return cmp.Or(s.ConcurrencyPolicy, ConcurrencyAllow) }

// Run returns the pod of a run at a time of the schedule. Its name has the minutes since 1970, as that of a CronJob's Job. Manual is set
// for one that a person has requested; its name has the seconds.
func (p *Pod) Run(at time.Time, manual bool) *Pod {
	run := *p
	run.Schedule = nil
	run.Labels, run.Annotations = map[string]string{}, map[string]string{annotationScheduledFor: at.Format(time.RFC3339)}
	run.Name += "-" + strconv.FormatInt(at.Unix()/60, 10)
	if manual {
		run.Name = p.Name + manualRun + strconv.FormatInt(at.Unix(), 10)
		run.Annotations = map[string]string{annotationManual: "manual"}
	}
	maps.Copy(run.Labels, p.Labels)
	maps.Copy(run.Annotations, p.Annotations)
	run.Labels[LabelSchedule] = p.Name
	return &run
}

func (v *validator) schedule(s *Schedule) {
	if s == nil {
		return
	}
	p := v.pod
	v.required(s, "cron", s.Cron == "")
	if _, err := calendar.Zone(s.TimeZone); err != nil {
		v.badHint(&s.TimeZone, "install tzdata if the name is correct", "Invalid value: %s: %s", quote(s.TimeZone), printable(err.Error()))
	} else if _, err := calendar.Parse(s.Cron, ""); err != nil && s.Cron != "" {
		const hint = `write minute, hour, day, month and day of the week, such as "0 3 * * *"`
		v.badHint(&s.Cron, hint, "Invalid value: %s: %s", quote(s.Cron), printable(err.Error()))
	}
	if n := v.at[&s.TimeZone]; n != nil && s.TimeZone == "" {
		v.bad(&s.TimeZone, "must not be empty")
	}
	chosen(v, &s.ConcurrencyPolicy, ConcurrencyAllow, ConcurrencyForbid, ConcurrencyReplace)
	if s.StartingDeadlineSeconds != nil && *s.StartingDeadlineSeconds < minDeadline {
		v.bad(s.StartingDeadlineSeconds, "must be greater than or equal to %v", minDeadline)
	}
	if s.JitterSeconds > maxJitter {
		v.bad(&s.JitterSeconds, "must be less than or equal to %v", maxJitter)
	}
	for _, limit := range []*int32{s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit} {
		if limit != nil && (*limit < 0 || *limit > maxHistory) {
			v.bad(limit, "must be between 0 and %d, inclusive", maxHistory)
		}
	}
	if len(p.Name) > maxScheduledName || len(validation.IsValidLabelValue(p.Name)) > 0 {
		v.bad(s, "the name of the pod must be no more than %d characters, since the names of its runs are longer", maxScheduledName)
	}
	if p.RestartPolicy == RestartAlways {
		v.badHint(s, `set restartPolicy to "OnFailure" or "Never" at the top of the file`,
			`requires restartPolicy "OnFailure" or "Never": a run of a pod that is always restarted does not complete`)
	}
	if p.Update != nil {
		v.bad(p.Update, "must not be set with schedule: each run has the newest definition")
	}
	if p.Systemd != nil {
		v.bad(p.Systemd, "must not be set with schedule: the schedule starts the pod")
	}
}
