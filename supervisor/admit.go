package supervisor

import (
	"context"
	"fmt"
	"slices"

	"github.com/podstead/podstead/spec"
)

// RefusedError says that a pod is not accepted, since it could not run beside what is there.
type RefusedError struct {
	Pod string
	Err error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("pod %q is refused: %v", e.Pod, e.Err) }

// Unwrap is the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// conflict returns why the host ports of a pod cannot be had: another pod has one, or is about to. A pod that has ended, or is
// about to, holds up nobody here: its successor waits for its ports. The caller holds the lock.
func (s *Supervisor) conflict(pod *spec.Pod) error {
	wanted := pod.HostPorts()
	if len(wanted) == 0 {
		return nil
	}
	check := func(other *spec.Pod) error {
		for _, held := range other.HostPorts() {
			for _, port := range wanted {
				if port.Overlaps(held) {
					return fmt.Errorf("host port %d/%s: pod %q has it", port.HostPort, port.Protocol, other.Name)
				}
			}
		}
		return nil
	}
	for name, l := range s.pods {
		other := s.adding[name]
		if l != nil {
			now := l.snapshot.Load()
			if now.Status.Phase.Terminal() || !now.Facts.Stop.Asked.IsZero() {
				continue
			}
			other = now.Pod
		}
		if other == nil || name == pod.Name {
			continue
		}
		if err := check(other); err != nil {
			return err
		}
	}
	return nil
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

// vanishing returns why the volumes of a pod cannot be had: one is being removed, and would be taken from under it. The caller
// holds the lock.
func (s *Supervisor) vanishing(pod *spec.Pod) error {
	for i := range pod.Volumes {
		if claim := pod.Volumes[i].PersistentVolumeClaim; claim != nil && s.removing[claim.ClaimName] > 0 {
			return fmt.Errorf("volume %q is being removed", claim.ClaimName)
		}
	}
	return nil
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
	for _, p := range s.Pods() {
		add(p.Pod)
	}
	s.mu.Lock()
	for _, pod := range s.adding {
		add(pod)
	}
	s.mu.Unlock()
	for _, pods := range users {
		slices.Sort(pods)
	}
	return users
}
