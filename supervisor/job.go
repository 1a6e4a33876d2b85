package supervisor

import (
	"context"
	"maps"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// endJobs tells the pods of each Job that it has ended, until ctx ends. A pod that is notified again does not change.
func (s *Supervisor) endJobs(ctx context.Context) {
	for {
		changed := s.Changed()
		for _, name := range s.jobs() {
			pods, _ := s.job(name)
			end, unaware := lifecycle.EndOfJob(pods, s.shared.now())
			if end.Ended.IsZero() {
				continue
			}
			for _, pod := range unaware {
				s.tellEnd(ctx, pod, end)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// jobs returns the names of the Jobs that have pods.
func (s *Supervisor) jobs() []string {
	names := map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.pods {
		if l == nil {
			continue
		}
		if job := l.snapshot.Load().Pod.Job; job != nil {
			names[job.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// job returns the pods of a Job, for the pods that wait in it. See [peers].
func (s *Supervisor) job(name string) ([]lifecycle.JobPod, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(s.recovered) {
		return nil, s.recovered
	}
	var pods []lifecycle.JobPod
	add := func(p *Snapshot) bool {
		is := p.Pod.Job != nil && p.Pod.Job.Name == name
		if is {
			pods = append(pods, lifecycle.JobPod{Pod: p.Pod, Facts: &p.Facts, Phase: p.Status.Phase})
		}
		return is
	}
	for _, p := range s.blocked {
		add(&p.snapshot)
	}
	for _, l := range s.pods {
		if l != nil && add(l.snapshot.Load()) && !closed(l.ready) {
			return nil, l.ready // its snapshot is that of an earlier supervisor, possibly of an earlier boot
		}
	}
	return pods, s.changed
}

// jobTurns are the turns of the pods of a Job, until a channel is closed.
type jobTurns struct {
	of      map[string]string
	changed <-chan struct{}
}

// turns computes the turns of a Job once for all pods that wait in it. See [peers].
func (s *Supervisor) turns(name string) (map[string]string, <-chan struct{}) {
	s.turning.Lock()
	defer s.turning.Unlock()
	if known, ok := s.jobTurns[name]; ok && !closed(known.changed) {
		return known.of, known.changed
	}
	pods, changed := s.job(name)
	known := jobTurns{lifecycle.JobTurns(pods, s.shared.now()), changed}
	if len(pods) == 0 {
		delete(s.jobTurns, name)
	} else {
		s.jobTurns[name] = known
	}
	return known.of, known.changed
}

// tellEnd tells a pod how its Job has finished.
func (s *Supervisor) tellEnd(ctx context.Context, pod string, end lifecycle.JobPart) {
	s.mu.Lock()
	l := s.pods[pod]
	s.mu.Unlock()
	if l == nil {
		return // it is not supervised, or deleted
	}
	select {
	case l.mailbox <- jobEnded{end}:
	case <-l.ended:
	case <-ctx.Done():
	}
}

// nextRun returns the run of its Job in which the pod takes part if it is started again.
func (l *loop) nextRun() int {
	if l.pod.Job == nil {
		return 0
	}
	pods, _ := l.shared.peers.job(l.pod.Job.Name)
	return lifecycle.NextRun(pods)
}

// waitForTurn waits until a pod may start in its Job.
func waitForTurn(ctx context.Context, pods peers, pod string, job spec.WaitCondition, report func(unmet string)) error {
	for {
		turns, changed := pods.turns(job.Object)
		unmet := lifecycle.JobTurn(pod, turns)
		if unmet == "" {
			return nil
		}
		report(unmet)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
