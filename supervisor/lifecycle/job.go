package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
)

// Reasons for which a Job ends, beside [ReasonBackoffLimit] and [ReasonDeadlineExceeded] (batch/v1: JobReasonSuccessPolicy and others).
const (
	ReasonSuccessPolicy      Reason = "SuccessPolicy"
	ReasonCompletionsReached Reason = "CompletionsReached"
	ReasonPodFailurePolicy   Reason = "PodFailurePolicy"
	ReasonMaxFailedIndexes   Reason = "MaxFailedIndexesExceeded"
	ReasonFailedIndexes      Reason = "FailedIndexes"
)

// JobPart is the part of a pod in its Job, see [spec.Pod.Job]. How the Job has finished is recorded in each pod.
type JobPart struct {
	// Run is the number of the run of the Job that the pod takes part in. Whatever starts a pod again of a Job that has finished makes it
	// take part in the next run. A pod without a recorded end takes part in the newest one, whatever its number.
	Run     int     `json:"run,omitempty"`
	Ended   Instant `json:"ended,omitzero"`   // when the run ended
	Reason  Reason  `json:"reason,omitempty"` // why
	Message string  `json:"message,omitempty"`
}

// Complete reports whether the Job has succeeded.
func (j *JobPart) Complete() bool {
	return j.Reason == ReasonSuccessPolicy || j.Reason == ReasonCompletionsReached
}

// startAgain makes the pod take part in a run of a Job that has finished.
func (j *JobPart) startAgain(run int) {
	if !j.Ended.IsZero() {
		*j = JobPart{Run: max(run, j.Run+1)}
	}
}

// JobEnded reports that the Job of the pod has ended. What runs of the pod is stopped, and what waits does not start.
type JobEnded struct{ Part JobPart }

func (e JobEnded) apply(f *Facts) {
	if f.Job.Ended.IsZero() {
		f.Job = e.Part
	}
}

// failWithJob stops a pod whose Job has finished, and reports whether it did. A pod that has terminated keeps its status, and so does one
// that a person has stopped.
func (p *plan) failWithJob() bool {
	part := &p.facts.Job
	over := !p.facts.Stop.Requested.IsZero() || p.facts.Restart.pending() || finished(p.pod, p.facts)
	if p.pod.Job == nil || part.Ended.IsZero() || over {
		return false
	}
	reason, how := ReasonJobFailed, "failed"
	if part.Complete() {
		reason, how = ReasonJobComplete, "completed"
	}
	p.do(FailPod{
		Reason: reason, Message: fmt.Sprintf("Job %s %s (%s): %s", p.pod.Job.Name, how, part.Reason, part.Message),
		Grace: EffectiveGrace(p.pod, nil).Period,
	})
	return true
}

// JobPod is a pod of a Job, with the phase of its status.
type JobPod struct {
	Pod   *spec.Pod
	Facts *Facts
	Phase Phase // [PhaseUnknown] of one that is not supervised
}

// failed reports whether the pod has failed for good. One that a person has stopped has neither failed nor succeeded, and one that starts
// again with the host has not failed.
func (p *JobPod) failed() bool {
	of := p.Facts.Stop.Reason // the end of a Job, possibly of another one that the pod had before
	return p.Phase == PhaseFailed && !p.Facts.Stop.ByUser && !p.startsAgain() && of != ReasonJobComplete && of != ReasonJobFailed
}

// startsAgain reports whether the pod has terminated since the host shuts down, and starts again with it.
func (p *JobPod) startsAgain() bool { return p.Facts.startsAfterShutdown(Restarts(p.Pod)) }

// placed reports whether the pod has a place among those that run at the same time.
func (p *JobPod) placed() bool {
	w := &p.Facts.Wait
	return !p.Phase.Terminal() && (!w.Ended.IsZero() || !w.Conditions[p.Pod.Job.Turn()].Met.IsZero())
}

// current returns the pods of the newest run of their Job, in the order in which they start, and its number. Those that are being deleted
// do not count.
func current(pods []JobPod) (list []JobPod, run int) {
	for i := range pods {
		run = max(run, pods[i].Facts.Job.Run)
	}
	for _, p := range pods {
		part := &p.Facts.Job
		if !p.Facts.Stop.Delete && (part.Run == run || part.Ended.IsZero()) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b JobPod) int { return order(&a, &b) })
	return list, run
}

// order compares pods of a Job in the order in which they start.
func order(a, b *JobPod) int {
	return cmp.Or(cmp.Compare(a.Pod.Job.Index, b.Pod.Job.Index), cmp.Compare(a.Pod.Name, b.Pod.Name))
}

// NextRun returns the number of the run in which a pod takes part that is started again: the newest one, or the next if that has ended.
func NextRun(pods []JobPod) int {
	list, run := current(pods)
	if slices.ContainsFunc(list, func(p JobPod) bool { return !p.Facts.Job.Ended.IsZero() }) {
		run++
	}
	return run
}

// EndOfJob returns how the newest run of a Job has finished, or ends now, and the names of its pods that have no record of it yet. Ended is
// zero while the run continues. The pods are all those that exist. Equal facts lead to the same end, also after a restart of the daemon
// that has lost the record.
//
// The order of the rules is that of the Job controller (syncJob).
func EndOfJob(pods []JobPod, now Instant) (end JobPart, unaware []string) {
	list, run := current(pods)
	for i := range list {
		if part := list[i].Facts.Job; !part.Ended.IsZero() {
			end = part
		} else {
			unaware = append(unaware, list[i].Pod.Name)
		}
	}
	if !end.Ended.IsZero() || len(list) == 0 {
		return end, unaware
	}
	partial := run > 0 // it has those pods that were started again
	reason, message := verdict(list[0].Pod.Job, list, partial, partial || len(pods) >= list[0].Pod.Job.MaxParallel())
	if reason == "" {
		return JobPart{}, nil
	}
	return JobPart{Run: run, Ended: now, Reason: reason, Message: message}, unaware
}

// verdict returns why a Job ends with these pods; empty: it continues. A partial run ends when all of them have terminated. Known: a Job
// without completions has no other pods, such as some that are not accepted yet.
func verdict(job *spec.Job, pods []JobPod, partial, known bool) (Reason, string) {
	succeeded, failed, terminated, count := map[int32]bool{}, map[int32]bool{}, 0, 0
	for i := range pods {
		p := &pods[i]
		if p.Phase != PhaseUnknown {
			count += failures(p.Pod, p.Facts)
		}
		switch {
		case p.Phase == PhaseSucceeded:
			succeeded[p.Pod.Job.Index] = true
		case p.failed():
			failed[p.Pod.Job.Index] = true
		}
		if p.Phase.Terminal() && !p.startsAgain() {
			terminated++
		}
	}
	over := terminated == len(pods)
	for i := range pods {
		if message := failsJob(job, &pods[i]); message != "" {
			return ReasonPodFailurePolicy, message
		}
	}
	if count > int(job.Limit()) {
		return ReasonBackoffLimit, backoffLimitMessage
	}
	if job.BackoffLimitPerIndex == nil {
		for i := range pods {
			if pods[i].failed() {
				return failedForGood(&pods[i])
			}
		}
	}
	switch {
	case job.MaxFailedIndexes != nil && len(failed) > int(*job.MaxFailedIndexes):
		return ReasonMaxFailedIndexes, "Job has exceeded the specified maximal number of failed indexes"
	case len(failed) > 0 && (partial && over || job.Completions != nil && len(failed)+len(succeeded) >= int(*job.Completions)):
		return ReasonFailedIndexes, "Job has failed indexes"
	}
	if i := fulfilled(job, succeeded); i >= 0 {
		return ReasonSuccessPolicy, fmt.Sprintf("Matched rules at index %d", i)
	}
	if len(succeeded) > 0 && over && (partial || job.Completions == nil && known) ||
		job.Completions != nil && len(succeeded) >= int(*job.Completions) {
		return ReasonCompletionsReached, "Reached expected number of succeeded pods"
	}
	return "", ""
}

// failsJob returns the message of a FailJob rule that a pod matches (getFailJobMessage of the Job controller); empty: it matches none.
func failsJob(job *spec.Job, p *JobPod) string {
	if job.PodFailurePolicy == nil || !p.failed() {
		return ""
	}
	for i := range job.PodFailurePolicy.Rules {
		r := &job.PodFailurePolicy.Rules[i]
		for c := range containersOf(p.Pod) {
			a := &p.Facts.Container(c.Name).Newest
			if !a.terminated() || !r.OnExitCodes.Matches(c.Name, int32(a.Exit.Code)) {
				continue
			}
			if r.Action != spec.ActionFailJob {
				return ""
			}
			return fmt.Sprintf("Container %s for pod default/%s failed with exit code %d matching FailJob rule at index %d",
				c.Name, p.Pod.Name, a.Exit.Code, i)
		}
	}
	return ""
}

// failedForGood returns the end of a Job one of whose pods has failed for a reason for which it is not started again.
func failedForGood(p *JobPod) (Reason, string) {
	stop := &p.Facts.Stop
	if stop.Reason == ReasonDeadlineExceeded {
		return ReasonDeadlineExceeded, "Job was active longer than specified deadline"
	}
	return ReasonBackoffLimit, suffixed("Pod "+p.Pod.Name+" failed and is not started again", stop.Message)
}

// fulfilled returns the first rule of the success policy of a Job that is fulfilled; -1: none is (matchSuccessPolicy of the Job
// controller).
func fulfilled(job *spec.Job, succeeded map[int32]bool) int {
	if job.SuccessPolicy == nil || job.Completions == nil || len(succeeded) == 0 {
		return -1
	}
	return slices.IndexFunc(job.SuccessPolicy.Rules, func(r spec.SuccessRule) bool {
		if r.SucceededIndexes == "" {
			return r.SucceededCount != nil && len(succeeded) >= int(*r.SucceededCount)
		}
		required, err := spec.ParseIndexes(r.SucceededIndexes, *job.Completions)
		n := 0
		for index := range succeeded {
			if required.Contains(index) {
				n++
			}
		}
		return err == nil && (n == required.Len() || r.SucceededCount != nil && n >= int(*r.SucceededCount))
	})
}

// JobTurns returns for each pod of a Job that waits why it is not its turn to start; empty: it is. The pods start in the order of their
// indexes. Each pod decides for itself: those before it that wait count as those that run, so that two never take the same place.
func JobTurns(pods []JobPod, now Instant) map[string]string {
	list, _ := current(pods)
	turns := make(map[string]string, len(list))
	if len(list) == 0 {
		return turns
	}
	end, _ := EndOfJob(pods, now)
	parallelism := list[0].Pod.Job.MaxParallel()
	places := parallelism
	for i := range pods {
		if pods[i].placed() {
			places--
		}
	}
	for i := range list {
		p := &list[i]
		if p.Phase.Terminal() {
			continue
		}
		if !p.placed() {
			places--
		}
		switch {
		case !end.Ended.IsZero():
			turns[p.Pod.Name] = "the Job has finished"
		case places < 0 && !p.placed():
			turns[p.Pod.Name] = fmt.Sprintf("parallelism of %d reached", parallelism)
		default:
			turns[p.Pod.Name] = ""
		}
	}
	return turns
}

// JobTurn returns why it is not the turn of a pod to start, see [JobTurns].
func JobTurn(name string, turns map[string]string) string {
	if unmet, known := turns[name]; known {
		return unmet
	}
	return "not found"
}
