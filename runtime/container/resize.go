package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Resize sets the requests and limits of a pod and of its running containers in their cgroups. Pods without cgroups have none. The sandbox
// of the pod must not be started or removed meanwhile.
//
// The order is that of the kubelet (doPodResizeAction): nothing is changed if a memory limit would be lower than what is used; the cgroup
// of the pod grows before those of containers change, of which those that shrink are first; and it shrinks afterwards.
func (s *Service) Resize(ctx context.Context, uid string, pod *spec.Pod) error {
	ctx, cancel := engine.WithTimeout(ctx, engine.CreateTimeout)
	defer cancel()
	if err := s.resize(ctx, uid, pod); err != nil {
		return engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	return nil
}

func (s *Service) resize(ctx context.Context, uid string, pod *spec.Pod) error {
	groups := s.config.Cgroups
	if groups.Without(uid) {
		if refused := s.config.Host.CheckWithoutCgroups(pod); len(refused) > 0 {
			return lifecycle.Failure{
				Reason: lifecycle.ReasonInfeasible, Message: refused[0].Message + "; a restart of the pod sets them",
			}
		}
		return nil
	}
	limits := s.config.Host.PodLimits(pod, s.config.PidsLimit)
	list, err := s.resizable(ctx, uid, pod)
	if err == nil {
		err = checkUsage(groups.Pod(uid), limits.Memory, list)
	}
	if err == nil {
		err = s.limitPod(ctx, uid, limits, groups.Raise)
	}
	if err != nil {
		return err
	}
	for i := range list {
		if err := s.resizeContainer(ctx, uid, &list[i]); err != nil {
			return fmt.Errorf("resize container %q: %w", list[i].name, err)
		}
	}
	return s.limitPod(ctx, uid, limits, groups.Limit)
}

// limitPod sets limits of the cgroup of a pod, as a start and a resize do at the same time: a start that has read the earlier limits must
// not write them after the resize.
func (s *Service) limitPod(
	ctx context.Context, uid string, l cgroup.Limits, set func(ctx context.Context, uid string, l cgroup.Limits) error,
) error {
	unlock, err := s.locks.Lock(ctx, uid+"/") // no container has an empty name
	if err != nil {
		return err
	}
	defer unlock()
	return set(ctx, uid, l)
}

// resizable is a container that runs.
type resizable struct {
	container client.Container
	name      string
	resources *specs.LinuxResources
	cgroup    string
	shrinks   bool // its memory limit
}

// limit returns the new memory limit; 0: none.
func (r *resizable) limit() int64 {
	if m := r.resources.Memory; m != nil && m.Limit != nil {
		return *m.Limit
	}
	return 0
}

// resizable returns the containers of a pod that run, those first whose memory limits become lower.
func (s *Service) resizable(ctx context.Context, uid string, pod *spec.Pod) ([]resizable, error) {
	swap, oomGroup, err := s.config.Cgroups.Features(uid)
	if err != nil {
		return nil, err
	}
	found, err := record.Containers(ctx, s.config.Client, uid)
	if err != nil {
		return nil, err
	}
	var list []resizable
	for _, c := range found {
		labels := record.Info(ctx, c).Labels
		definition := ownContainer(pod, labels[record.LabelContainer])
		if definition == nil || labels[record.LabelExit] != "" {
			continue
		}
		r := resizable{
			container: c, name: definition.Name, cgroup: s.config.Cgroups.Container(uid, c.ID()),
			resources: oci.Resized(pod, definition, s.config.Host, oci.PodCgroup{Swap: swap, OOMGroup: oomGroup}),
		}
		now, err := cgroup.LimitsOf(r.cgroup)
		if err != nil {
			continue // it has exited, or has not been started
		}
		r.shrinks = lower(r.limit(), now.Memory)
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b resizable) int {
		switch {
		case a.shrinks == b.shrinks:
			return 0
		case a.shrinks:
			return -1
		}
		return 1
	})
	return list, nil
}

// ownContainer returns the init container or the container of a pod with this name; nil: it has none.
func ownContainer(pod *spec.Pod, name string) *spec.Container {
	for c := range pod.OwnContainers() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// lower reports whether a memory limit is lower than the present one, where 0 is none.
func lower(limit, now int64) bool { return limit > 0 && (now == 0 || limit < now) }

// checkUsage returns an error if a memory limit that becomes lower is not higher than what is used. The messages are the kubelet's.
func checkUsage(podGroup string, podLimit int64, list []resizable) error {
	now, err := cgroup.LimitsOf(podGroup)
	if err != nil {
		return err
	}
	var refused []string
	check := func(what, path string, limit int64) {
		usage := cgroup.UsageOf(path).Memory
		switch {
		case usage == nil:
			if _, err := cgroup.LimitsOf(path); errors.Is(err, fs.ErrNotExist) && path != podGroup {
				return // the container has exited
			}
			refused = append(refused, fmt.Sprintf("missing %s memory usage", what))
		case usage.Usage >= uint64(limit):
			refused = append(refused,
				fmt.Sprintf("attempting to set %s memory limit (%d) below current usage (%d)", what, limit, usage.Usage))
		}
	}
	if lower(podLimit, now.Memory) {
		check("pod", podGroup, podLimit)
	}
	for i := range list {
		if list[i].shrinks {
			check(fmt.Sprintf("container %q", list[i].name), list[i].cgroup, list[i].limit())
		}
	}
	if len(refused) > 0 {
		return errors.New("cannot decrease memory limits: " + strings.Join(refused, ", "))
	}
	return nil
}

// resizeContainer changes the cgroup of a container, unless it does not run any more.
func (s *Service) resizeContainer(ctx context.Context, uid string, r *resizable) error {
	unlock, err := s.locks.Lock(ctx, uid+"/"+r.name)
	if err != nil {
		return err
	}
	defer unlock()
	runs := func() (client.Task, error) {
		task, err := s.config.Exits.Task(ctx, r.container)
		if err != nil {
			return nil, err
		}
		status, err := task.Status(ctx)
		if err == nil && status.Status != client.Running {
			err = fmt.Errorf("container %q is %s: %w", r.name, status.Status, errdefs.ErrNotFound)
		}
		return task, err
	}
	task, err := runs()
	if err == nil {
		err = task.Update(ctx, client.WithResources(r.resources))
	}
	if err != nil {
		if _, stateErr := runs(); errdefs.IsNotFound(stateErr) {
			return nil
		}
	}
	return err
}
