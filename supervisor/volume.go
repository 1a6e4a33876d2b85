package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Volume is a persistent volume of the host.
type Volume struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // that use it, sorted
	// Project is the label project of the pod that has created it; empty: not known, or none.
	Project string `json:"project,omitempty"`
}

// VolumeInUseError reports that a pod uses a volume.
type VolumeInUseError struct{ Volume, Pod string }

func (e *VolumeInUseError) Error() string {
	return fmt.Sprintf("volume %q is in use by pod %q", e.Volume, e.Pod)
}

// Volumes returns the persistent volumes of the host, sorted by name.
func (s *Supervisor) Volumes(ctx context.Context) ([]Volume, error) {
	projects, err := s.shared.runtime.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	users := s.volumeUsers()
	list := make([]Volume, 0, len(projects))
	for _, name := range slices.Sorted(maps.Keys(projects)) {
		list = append(list, Volume{Name: name, Pods: users[name], Project: projects[name]})
	}
	return list, nil
}

// RemoveVolume deletes a persistent volume and its data. The error is a [*VolumeInUseError] if a pod uses the volume, and
// [ErrNotFound] if it does not exist.
func (s *Supervisor) RemoveVolume(ctx context.Context, name string) error {
	mark := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.removing[name] += n; s.removing[name] == 0 {
			delete(s.removing, name)
		}
	}
	mark(1) // before reading the pods: a pod that is added later is rejected
	defer mark(-1)
	if pods := s.volumeUsers()[name]; len(pods) > 0 {
		return &VolumeInUseError{Volume: name, Pod: pods[0]}
	}
	err := s.shared.runtime.RemoveVolume(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("volume %q %w", name, ErrNotFound)
	}
	return err
}

// RunningVolumeUser returns a pod that uses a persistent volume and is not at rest; empty: there is none.
func (s *Supervisor) RunningVolumeUser(name string) string {
	pods := s.Pods()
	for _, user := range s.volumeUsers()[name] {
		i := slices.IndexFunc(pods, func(p Snapshot) bool { return p.Pod.Name == user })
		if i < 0 || !pods[i].AtRest { // without a snapshot: it is being added
			return user
		}
	}
	return ""
}

// volumeConflicts returns a refusal for each volume of a pod that is being deleted. s.mu must be held.
func (s *Supervisor) volumeConflicts(pod *spec.Pod) []lifecycle.Refusal {
	var list []lifecycle.Refusal
	for i := range pod.Volumes {
		if claim := pod.Volumes[i].PersistentVolumeClaim; claim != nil && s.removing[claim.ClaimName] > 0 {
			list = append(list, lifecycle.Refusal{
				Reason: lifecycle.ReasonVolumeTerminating, Field: fmt.Sprintf("volumes[%d].persistentVolumeClaim.claimName", i),
				Message: fmt.Sprintf("volume %q is being deleted", claim.ClaimName), Hint: "retry after the volume has been deleted",
			})
		}
	}
	return list
}

// volumeUsers returns the names of the pods that use each persistent volume, sorted.
func (s *Supervisor) volumeUsers() map[string][]string {
	users := map[string][]string{}
	add := func(pod *spec.Pod) {
		for i := range pod.Volumes {
			claim := pod.Volumes[i].PersistentVolumeClaim
			if claim != nil && !slices.Contains(users[claim.ClaimName], pod.Name) {
				users[claim.ClaimName] = append(users[claim.ClaimName], pod.Name)
			}
		}
	}
	for _, pod := range s.Planned() { // before the running pods: a pod is in at least one of the two
		add(pod)
	}
	for _, p := range s.Pods() {
		add(p.Pod)
	}
	for _, pods := range users {
		slices.Sort(pods)
	}
	return users
}
