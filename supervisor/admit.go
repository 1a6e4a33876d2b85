package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// RefusedError says that a pod is not accepted, for all the reasons that there are.
type RefusedError struct {
	Pod      string
	Refusals []lifecycle.Refusal // at least one
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("pod %q is refused: %s", e.Pod, e.why())
}

// why is all refusals, on one line.
func (e *RefusedError) why() string {
	texts := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		texts[i] = r.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap is the causes.
func (e *RefusedError) Unwrap() []error {
	errs := make([]error, len(e.Refusals))
	for i, r := range e.Refusals {
		errs[i] = r
	}
	return errs
}

// refused is the error of a pod for one reason.
func refused(pod string, err error) error {
	return &RefusedError{Pod: pod, Refusals: lifecycle.Refusals(err)}
}

// admissible returns why a pod cannot run here, whatever the other pods are: what the machine's policy and the machine itself
// do not allow. A pod that was accepted is never asked again: it runs on under a stricter policy, as what Pod Security has
// admitted in a cluster.
func (s *Supervisor) admissible(pod *spec.Pod) []lifecycle.Refusal {
	return append(s.shared.policy.Check(pod), lifecycle.Refusals(s.shared.runtime.Admit(pod))...)
}

// tellRefused publishes the event of a pod that is not accepted. It has no UID: it never was one.
func (s *Supervisor) tellRefused(pod string, refusals []lifecycle.Refusal, by string) {
	var hints []string
	for _, r := range refusals {
		if r.Hint != "" && !slices.Contains(hints, r.Hint) {
			hints = append(hints, r.Hint)
		}
	}
	why := (&RefusedError{Refusals: refusals}).why()
	e := PodRejected.event(s.shared.now(), pod, fields{"error": why, "hint": strings.Join(hints, "; "), "by": by})
	e.Reason = string(refusals[0].Reason)
	s.shared.ring.add(e)
}

// conflicts are the host ports of a pod that cannot be had: another pod has them, or is about to. A pod that has ended, or is
// about to, holds up nobody here: its successor waits for its ports. The caller holds the lock.
func (s *Supervisor) conflicts(pod *spec.Pod) []lifecycle.Refusal {
	if len(pod.HostPorts()) == 0 {
		return nil
	}
	var list []lifecycle.Refusal
	for _, other := range s.holders(pod.Name) {
		for field, port := range pod.HostPortFields() {
			if !slices.ContainsFunc(other.HostPorts(), port.Overlaps) {
				continue
			}
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonNodePorts, Field: field,
				Message: fmt.Sprintf("host port %d/%s: pod %q has it", port.HostPort, port.Protocol, other.Name),
				Hint:    fmt.Sprintf("take another host port, or end the other pod: podstead delete %s", other.Name),
			})
		}
	}
	return list
}

// holders are the pods, but for that of a name, that have what they were given for themselves alone, sorted by name. The caller
// holds the lock.
func (s *Supervisor) holders(but string) []*spec.Pod {
	var list []*spec.Pod
	for name, l := range s.pods {
		other := s.adding[name]
		if l != nil {
			now := l.snapshot.Load()
			if now.Status.Phase.Terminal() || !now.Facts.Stop.Requested.IsZero() {
				continue
			}
			other = now.Pod
		}
		if other != nil && name != but {
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *spec.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Volume is a persistent volume of the machine.
type Volume struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // those that name it, sorted
}

// VolumeInUseError says that a pod names a volume.
type VolumeInUseError struct{ Volume, Pod string }

func (e *VolumeInUseError) Error() string {
	return fmt.Sprintf("volume %q is in use: pod %q names it", e.Volume, e.Pod)
}

// Volumes returns the persistent volumes of the machine, sorted by name.
func (s *Supervisor) Volumes(ctx context.Context) ([]Volume, error) {
	names, err := s.shared.runtime.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	users := s.users()
	list := make([]Volume, 0, len(names))
	for _, name := range names {
		list = append(list, Volume{Name: name, Pods: users[name]})
	}
	return list, nil
}

// RemoveVolume removes a persistent volume with what is in it. One that a pod names is a [*VolumeInUseError], one that is not
// there an [io/fs.ErrNotExist].
func (s *Supervisor) RemoveVolume(ctx context.Context, name string) error {
	mark := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.removing[name] += n; s.removing[name] == 0 {
			delete(s.removing, name)
		}
	}
	mark(1) // before the pods are looked at: one that comes later is refused
	defer mark(-1)
	if pods := s.users()[name]; len(pods) > 0 {
		return &VolumeInUseError{Volume: name, Pod: pods[0]}
	}
	return s.shared.runtime.RemoveVolume(ctx, name)
}

// vanishing are the volumes of a pod that cannot be had: they are being removed, and would be taken from under it. The caller
// holds the lock.
func (s *Supervisor) vanishing(pod *spec.Pod) []lifecycle.Refusal {
	var list []lifecycle.Refusal
	for i := range pod.Volumes {
		if claim := pod.Volumes[i].PersistentVolumeClaim; claim != nil && s.removing[claim.ClaimName] > 0 {
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonVolumeTerminating, Field: fmt.Sprintf("volumes[%d].persistentVolumeClaim.claimName", i),
				Message: fmt.Sprintf("volume %q is being removed", claim.ClaimName), Hint: "try again when it is gone",
			})
		}
	}
	return list
}

// users are the pods that name each persistent volume, sorted.
func (s *Supervisor) users() map[string][]string {
	users := map[string][]string{}
	add := func(pod *spec.Pod) {
		for i := range pod.Volumes {
			claim := pod.Volumes[i].PersistentVolumeClaim
			if claim != nil && !slices.Contains(users[claim.ClaimName], pod.Name) {
				users[claim.ClaimName] = append(users[claim.ClaimName], pod.Name)
			}
		}
	}
	s.mu.Lock()
	for _, pod := range s.adding { // before those that there are: one is never in neither
		add(pod)
	}
	s.mu.Unlock()
	for _, p := range s.Pods() {
		add(p.Pod)
	}
	for _, pods := range users {
		slices.Sort(pods)
	}
	return users
}
