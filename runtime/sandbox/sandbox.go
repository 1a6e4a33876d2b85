// Package sandbox starts, watches and removes pod sandboxes: the namespaces, the network, the cgroup and the shim of a pod. It also has
// what all containers of a pod share: the files in /etc ([EtcFiles]), the network ([Network]), the volumes ([Volumes]) and the user
// namespace ([Users]).
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/containerd/containerd/v2/client"
	core "github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/exit"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/ociruntime"
	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/stats"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Config is what a [Service] needs. All fields are required, except PidsLimit.
type Config struct {
	Client    *client.Client
	Engine    *engine.Engine
	Dirs      record.Dirs
	Cgroups   podcgroup.Groups
	Host      oci.Host
	PidsLimit int64 // processes and threads of each pod; 0: no limit
	Exits     *exit.Recorder
	Etc       *EtcFiles
	Volumes   *Volumes
	Users     *Users
	Network   *Network
	Evictions *stats.DiskMonitor
	// Index contains the pods with a sandbox.
	Index *Index
	// Cleared receives what was killed and removed in the cgroup of a pod.
	Cleared func(uid string, cleared podcgroup.Cleared)
	// Locks has a lock for each pod, by UID. It is held while a sandbox is started or removed.
	Locks *guard.KeyedMutex
	// Classes are the OCI runtimes of pods with a runtime class.
	Classes *ociruntime.Classes
}

// Service manages the sandboxes of all pods. It is safe for concurrent use.
type Service struct{ config Config }

// New returns the service.
func New(c Config) *Service { return &Service{c} }

// Start pins the namespaces of the pod and starts its shim, or finds both.
func (s *Service) Start(
	ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox,
) (lifecycle.SandboxStarted, error) {
	ctx, cancel := engine.WithTimeout(ctx, engine.CreateTimeout)
	defer cancel()
	ips, err := s.start(ctx, uid, pod, a.Sandbox)
	if err != nil {
		return lifecycle.SandboxStarted{}, engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	return lifecycle.SandboxStarted{Sandbox: a.Sandbox, IPs: ips}, nil
}

func (s *Service) start(ctx context.Context, uid string, pod *spec.Pod, sandbox int) ([]string, error) {
	if err := record.CheckUID(uid); err != nil {
		return nil, err
	}
	if err := oci.CheckHostname(pod); err != nil {
		return nil, err
	}
	unlock, err := s.config.Locks.Lock(ctx, uid)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var class ociruntime.Choice
	running, err := s.config.Engine.LoadSandbox(ctx, record.SandboxID(uid, sandbox))
	switch {
	case err == nil: // it keeps its own, also if it is lost in the meantime and created again
		class = ociruntime.Choice{Program: running.Runtime(), UserNamespaces: running.Runtime()}
	case errdefs.IsNotFound(err):
		if err := s.clear(ctx, uid); err != nil { // it would run beside the pod
			return nil, err
		}
		s.config.Cgroups.SetWith(uid)
		if class, err = s.classOf(ctx, pod); err != nil {
			return nil, err
		}
	}
	if err := s.config.Volumes.PreparePod(ctx, uid, pod); err != nil { // needs no undo
		return nil, engine.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonFailedMount, err)
	}
	ctx, cancel := engine.Detached(ctx, engine.CreateTimeout)
	defer cancel()
	ips, err := s.create(ctx, uid, pod, sandbox, class)
	if err == nil {
		s.config.Index.Put(uid, pod, sandbox)
		return ips, nil
	}
	undoing, cancelUndo := engine.Detached(ctx, engine.UndoTimeout)
	defer cancelUndo()
	if undo := s.RemoveLocked(undoing, uid, sandbox); undo != nil {
		err = fmt.Errorf("%w (and the sandbox could not be removed: %w)", err, undo)
	}
	return nil, err
}

// classOf returns the OCI runtime of the runtime class of a pod; the zero value: it has none.
func (s *Service) classOf(ctx context.Context, pod *spec.Pod) (ociruntime.Choice, error) {
	if pod.RuntimeClassName == "" {
		return ociruntime.Choice{}, nil
	}
	class, err := s.config.Classes.Select(ctx, pod.RuntimeClassName)
	return class, engine.Failure(ctx, lifecycle.FailureRetry, lifecycle.ReasonRuntimeClassUnavailable, err)
}

// clear kills and removes what is in the cgroup of a pod. The pod must have no sandbox with a process.
func (s *Service) clear(ctx context.Context, uid string) error {
	cleared, err := s.config.Cgroups.Clear(ctx, uid)
	s.config.Cleared(uid, cleared)
	return err
}

// RemoveCgroup removes the cgroup of a pod with all that is in it, and that of a shim whose record is lost.
func (s *Service) RemoveCgroup(ctx context.Context, uid string) error {
	cleared, err := s.config.Cgroups.Remove(ctx, uid)
	s.config.Cleared(uid, cleared)
	if err != nil {
		return err // the removal is repeated
	}
	return s.config.Cgroups.RemoveShim(uid)
}

// create creates the namespaces, the network, the files, the cgroup and the shim of a sandbox. Containers need the network, the shim does
// not, so both are created at the same time.
func (s *Service) create(
	ctx context.Context, uid string, pod *spec.Pod, sandbox int, class ociruntime.Choice,
) (ips []string, err error) {
	ids, err := s.config.Users.Allocate(uid, pod)
	if err != nil {
		return nil, err
	}
	pins, err := namespace.Pin(s.config.Dirs.Sandbox(uid, sandbox), Namespaces(pod, ids))
	if err != nil {
		return nil, err
	}
	var connecting errgroup.Group
	connecting.Go(func() (err error) {
		if ips, err = s.config.Network.Connect(ctx, uid, pod, pins); err == nil {
			err = s.config.Etc.Write(ctx, uid, pod, sandbox, ids)
		}
		return err
	})
	program := class.Program
	if ids.Own() {
		program = class.UserNamespaces
	}
	started := s.startShim(ctx, uid, pod, sandbox, Joined(pins, ids), program)
	if err := connecting.Wait(); err != nil {
		return nil, err
	}
	return ips, started
}

// startShim creates the cgroup of a pod, and starts the shim of a sandbox in it. The program is the OCI runtime of its class; empty: it has
// none.
func (s *Service) startShim(ctx context.Context, uid string, pod *spec.Pod, sandbox int, n oci.Namespaces, program string) error {
	if err := s.config.Cgroups.Limit(ctx, uid, s.config.Host.PodLimits(pod, s.config.PidsLimit)); err != nil {
		return err
	}
	process, err := s.processSpec(uid, sandbox, pod, n)
	if err != nil {
		return err
	}
	labels := map[string]string{
		record.LabelUID: uid, record.LabelPod: pod.Name, record.LabelSandbox: strconv.Itoa(sandbox),
		record.LabelJournald: "true", record.LabelPrompt: "true",
	}
	if s.config.Cgroups.IsDelegated() {
		labels[record.LabelCgroup] = "true"
	}
	_, err = s.config.Engine.StartSandbox(ctx, record.SandboxID(uid, sandbox), engine.SandboxOptions{
		Labels: labels, Spec: process, Runtime: program,
	})
	return err
}

// Wait returns when the sandbox's shim has exited, or with a message when the pod must be evicted. It has no timeout. Until the sandbox is
// removed, the volumes and /etc/hosts of the pod are kept up to date. A later call with another definition of the pod replaces the one that
// they and the limits of its storage follow; the caller cancels the earlier call.
func (s *Service) Wait(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (evicted string, err error) {
	ctx, cancel := context.WithCancel(engine.Context(ctx))
	defer cancel()
	found, err := s.adopt(ctx, uid, pod, sandbox)
	for errors.Is(err, engine.ErrUnresponsive) {
		if err := s.config.Engine.AwaitResponse(ctx, record.SandboxID(uid, sandbox)); err != nil {
			return "", err
		}
		found, err = s.adopt(ctx, uid, pod, sandbox)
	}
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", engine.Failure(ctx, lifecycle.FailureRetry, "", err)
	}
	if !stats.MayEnd(pod) {
		return "", found.Wait(ctx)
	}
	type result struct {
		evicted string
		err     error
	}
	results := make(chan result, 2)
	go func() {
		message, err := s.config.Evictions.Wait(ctx, uid, pod)
		results <- result{message, err}
	}()
	go func() { results <- result{"", found.Wait(ctx)} }()
	first := <-results // the other one ends with the context, or when a file system responds
	return first.evicted, first.err
}

// adopt finds a sandbox and adds its pod to the index. It waits for a removal of the sandbox: a pod that is added during its removal would
// stay in the index.
func (s *Service) adopt(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (*engine.Sandbox, error) {
	unlock, err := s.config.Locks.Lock(ctx, uid)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := Load(ctx, s.config.Engine, s.config.Dirs, uid, sandbox)
	if err == nil || errors.Is(err, engine.ErrUnresponsive) { // then the pod runs as well
		s.config.Index.Put(uid, pod, sandbox)
	}
	return found, err
}

// Load is [engine.Engine.LoadSandbox]. A sandbox without a process whose namespaces or files are lost is not found: a record of the monitor
// outlives them.
func Load(ctx context.Context, e *engine.Engine, dirs record.Dirs, uid string, sandbox int) (*engine.Sandbox, error) {
	found, err := e.LoadSandbox(ctx, record.SandboxID(uid, sandbox))
	if err != nil || !found.IsIdle() {
		return found, err
	}
	lost, err := namespace.Lost(dirs.Sandbox(uid, sandbox))
	if err != nil {
		return nil, fmt.Errorf("load sandbox %s: %w", found.ID(), err)
	}
	if _, statErr := os.Stat(dirs.Etc(uid, sandbox)); lost || errors.Is(statErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("load sandbox %s: its namespaces or files are lost: %w", found.ID(), errdefs.ErrNotFound)
	}
	return found, nil
}

// Remove kills the containers in a sandbox, stops its shim, and removes its namespaces.
func (s *Service) Remove(ctx context.Context, uid string, sandbox int) error {
	ctx, cancel := engine.WithTimeout(ctx, engine.RemoveTimeout)
	defer cancel()
	if err := record.CheckUID(uid); err != nil {
		return err
	}
	unlock, err := s.config.Locks.Lock(ctx, uid)
	if err != nil {
		return err
	}
	defer unlock()
	return engine.Failure(ctx, lifecycle.FailureRetry, "", s.RemoveLocked(ctx, uid, sandbox))
}

// RemoveLocked is Remove for callers that hold the lock of the pod.
func (s *Service) RemoveLocked(ctx context.Context, uid string, sandbox int) error {
	inside, err := s.containers(ctx, uid, sandbox)
	if err != nil {
		return err
	}
	if err := s.killUnresponsive(ctx, uid, sandbox, inside); err != nil {
		return err
	}
	if err := s.terminateAll(ctx, inside); err != nil {
		return err
	}
	if err := s.config.Engine.RemoveSandbox(ctx, record.SandboxID(uid, sandbox)); err != nil {
		return err
	}
	// The shim has stopped the sandbox's process, if there was one. A shim that was killed while it created the process has not.
	if err := s.config.Cgroups.Kill(ctx, uid, record.SandboxID(uid, sandbox)); err != nil {
		return err
	}
	s.config.Index.Remove(uid, sandbox)
	if err := os.RemoveAll(s.config.Dirs.Etc(uid, sandbox)); err != nil {
		return err
	}
	if err := s.config.Network.Teardown(ctx, uid); err != nil {
		return err
	}
	last, err := removeDir(s.config.Dirs.Sandbox(uid, sandbox))
	if err != nil || !last {
		return err
	}
	return s.RemoveCgroup(ctx, uid)
}

// KillLocked kills everything that runs in a pod: its containers, the processes of its sandboxes, and what else is in its cgroup, such as
// containers whose records are lost. It is for a pod that is removed. The caller holds the lock of the pod.
func (s *Service) KillLocked(ctx context.Context, uid string, sandboxes []int, list []client.Container) error {
	for _, n := range sandboxes {
		inside, err := s.containers(ctx, uid, n)
		if err != nil {
			return err
		}
		if err := s.killUnresponsive(ctx, uid, n, inside); err != nil {
			return err
		}
	}
	if err := s.terminateAll(ctx, list); err != nil {
		return err
	}
	for _, n := range sandboxes {
		if err := s.config.Cgroups.Kill(ctx, uid, record.SandboxID(uid, n)); err != nil {
			return err
		}
	}
	return s.clear(ctx, uid)
}

// terminateAll kills containers concurrently and waits for their exit. A shim that has died cannot be removed while the engine has records
// of its containers' tasks.
func (s *Service) terminateAll(ctx context.Context, list []client.Container) error {
	var group errgroup.Group
	for _, c := range list {
		group.Go(func() error { return s.config.Exits.Terminate(ctx, c) })
	}
	return group.Wait()
}

// WithoutCgroup returns the UIDs of the pods whose newest sandbox has no [record.LabelCgroup].
func WithoutCgroup(records []core.Sandbox) (uids []string) {
	newest := map[string]int{}
	without := map[string]bool{}
	for _, r := range records {
		uid := r.Labels[record.LabelUID]
		if n, err := strconv.Atoi(r.Labels[record.LabelSandbox]); err == nil && uid != "" && n > newest[uid] {
			newest[uid], without[uid] = n, r.Labels[record.LabelCgroup] == ""
		}
	}
	maps.DeleteFunc(without, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(without))
}

// removeDir removes the directory of a sandbox, and that of its pod if it was the last one.
func removeDir(dir string) (last bool, err error) {
	if err := namespace.Unpin(dir); err != nil {
		return false, err // keep the directory: a mount in it must not be deleted
	}
	if err := os.RemoveAll(dir); err != nil {
		return false, err
	}
	err = os.Remove(filepath.Dir(dir))
	if errors.Is(err, unix.ENOTEMPTY) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// Numbers returns the sandboxes of a pod that have a record or a directory, sorted.
func (s *Service) Numbers(ctx context.Context, uid string) ([]int, error) {
	records, err := record.Sandboxes(ctx, s.config.Client)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, r := range records {
		if n, err := strconv.Atoi(r.Labels[record.LabelSandbox]); err == nil && r.Labels[record.LabelUID] == uid {
			numbers = append(numbers, n)
		}
	}
	dirs, err := os.ReadDir(s.config.Dirs.Sandboxes(uid))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range dirs {
		if n, err := strconv.Atoi(d.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}
