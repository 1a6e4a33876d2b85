// Package record defines where a pod is: what the container engine stores about it, and the files and directories of the
// runtime on disk. It writes no file.
//
// The records of the engine are the IDs, labels and extensions of containers and sandboxes. Everything that is needed to
// find a pod after a restart of the daemon is in these records. The files and directories are:
//
//	<State>/engine               images, snapshots, metadata
//	<State>/pods/<uid>/volumes   volumes of the pod
//	<State>/pods/<uid>/etc       files of /etc for the containers of each sandbox
//	<State>/pods/<uid>/messages  termination messages of containers
//	<State>/volumes              persistent volumes
//	<State>/network.json         subnets of the network, and the last addresses of pods
//	<State>/users.json           ID ranges of pods with a user namespace
//	<Run>/engine                 bundles and sockets
//	<Run>/rootfs/<container>     root file systems of containers with a user namespace
//	<Run>/process/<uid>          arguments and variables with secrets, until the shim has read them
//	<Run>/exec                   output of commands
//	<Run>/ns/<uid>/<sandbox>     pinned namespaces and /dev/shm
//	<Run>/volumes/<uid>          volumes in memory; see package volume
//	<Run>/images/<uid>/<volume>  mounted images of image volumes
//	<Run>/files                  mount points of copies from and to containers that are not running
//	<Run>/trial                  the container with which the OCI runtime is selected, while the daemon starts
//	<Run>/trial.json             its result, until the next boot
//	<Run>/network.json           addresses and host ports of pods
//	<Log>/<pod>_<uid>/<container>/<restarts>.log
//
// The directories of a pod are named after its UID, which is never reused.
package record

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The labels of containers and sandboxes.
const (
	LabelUID        = "podstead.io/uid"
	LabelPod        = "podstead.io/pod"
	LabelSandbox    = "podstead.io/sandbox"
	LabelContainer  = "podstead.io/container"
	LabelRound      = "podstead.io/round"
	LabelAttempt    = "podstead.io/attempt"
	LabelRestarts   = "podstead.io/restarts"
	LabelSpecHash   = "podstead.io/spec-hash"
	LabelImageID    = "podstead.io/image-id"
	LabelImageArch  = "podstead.io/image-architecture"
	LabelStopSignal = "podstead.io/image-stop-signal"
	LabelLog        = "podstead.io/log"
	LabelStdin      = "podstead.io/stdin"               // an [ocibundle.Stdin]
	LabelTerminal   = "podstead.io/terminal"            // "true": the container has a terminal
	LabelMessage    = "podstead.io/termination-message" // see exit.MessageLabel
	LabelBoot       = "podstead.io/boot"                // the kernel's boot ID when the container was created
	LabelExit       = "podstead.io/exit"                // an [exit.Exit] as JSON; set when the container has exited
	// LabelCgroup of a sandbox is "true" if the containers of the pod have cgroups. Only a daemon without root sets it.
	LabelCgroup = "podstead.io/cgroup"
	// "true": the container could not be started and is being removed; its exit is not reported.
	LabelUndone = "podstead.io/undone"
	// "true": the shim of the sandbox copies logs to journald; those of earlier versions do not.
	LabelJournald = "podstead.io/journald"

	// LabelPrompt of a sandbox is "true" if a wait for a container ends when its log is complete; shims of earlier versions do not do that.
	// Of a container it is "true" if none of its processes is left either: it has a PID namespace of its own.
	LabelPrompt = "podstead.io/prompt-exit"
)

// PodExtension is the extension of a container that holds the pod's definition as JSON.
const PodExtension = "podstead.io/pod"

// VolumesExtension is the extension of a container that holds the paths of the volumes that its image defines as JSON.
const VolumesExtension = "podstead.io/image-volumes"

// DevicesExtension is the extension of a container that holds what is known of its devices as JSON.
const DevicesExtension = "podstead.io/devices"

// ContainerID returns the engine's ID of a container. It is derived from the UID and ref, so that a repeated action finds the
// container.
func ContainerID(uid string, ref lifecycle.Ref) string {
	return Hash("container", uid, ref.Container, strconv.Itoa(ref.Round), strconv.Itoa(ref.Attempt))
}

// SandboxID returns the engine's ID of a sandbox.
func SandboxID(uid string, sandbox int) string { return Hash("sandbox", uid, strconv.Itoa(sandbox)) }

// Hash returns a hexadecimal hash of parts, 64 characters.
func Hash(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}

// Labels returns the labels of the container that a starts.
func Labels(uid string, pod *spec.Pod, a lifecycle.StartContainer, c *spec.Container) map[string]string {
	return map[string]string{
		LabelUID: uid, LabelPod: pod.Name, LabelContainer: a.Container, LabelSpecHash: c.Hash,
		LabelSandbox: strconv.Itoa(a.Sandbox), LabelRound: strconv.Itoa(a.Round),
		LabelAttempt: strconv.Itoa(a.Attempt), LabelRestarts: strconv.Itoa(a.Restarts),
	}
}

// Run reads a run from the record of its container.
func Run(c containers.Container) (lifecycle.Run, error) {
	var bad error
	number := func(label string) int {
		n, err := strconv.Atoi(c.Labels[label])
		if err != nil {
			bad = fmt.Errorf("container %s: label %s: %w", c.ID, label, err)
		}
		return n
	}
	run := lifecycle.Run{
		StartContainer: lifecycle.StartContainer{
			Ref: lifecycle.Ref{
				Container: c.Labels[LabelContainer], Round: number(LabelRound), Attempt: number(LabelAttempt),
			},
			Sandbox: number(LabelSandbox), Restarts: number(LabelRestarts), ImageID: c.Labels[LabelImageID],
		},
		ID: c.ID, Image: c.Image, Architecture: c.Labels[LabelImageArch],
	}
	return run, bad
}

// WithDefinition stores the pod's definition in the record of a container.
func WithDefinition(pod *spec.Pod) client.NewContainerOpts {
	return func(_ context.Context, _ *client.Client, c *containers.Container) error {
		if err := extend(c, PodExtension, pod); err != nil {
			return fmt.Errorf("store pod definition: %w", err)
		}
		return nil
	}
}

// extend adds an extension to a record.
func extend(c *containers.Container, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if c.Extensions == nil {
		c.Extensions = map[string]typeurl.Any{}
	}
	c.Extensions[name] = &anypb.Any{TypeUrl: name, Value: data}
	return nil
}

// WithImageDefined stores the paths of the volumes that the image of a container defines in its record.
func WithImageDefined(paths []string) client.NewContainerOpts {
	return func(_ context.Context, _ *client.Client, c *containers.Container) error {
		if len(paths) == 0 {
			return nil
		}
		if err := extend(c, VolumesExtension, paths); err != nil {
			return fmt.Errorf("store volumes of the image: %w", err)
		}
		return nil
	}
}

// ImageDefined returns the paths of the volumes that the image of a container defines from its record.
func ImageDefined(c containers.Container) (paths []string, err error) {
	if stored, ok := c.Extensions[VolumesExtension]; ok {
		if err = json.Unmarshal(stored.GetValue(), &paths); err != nil {
			err = fmt.Errorf("container %s: volumes of the image: %w", c.ID, err)
		}
	}
	return paths, err
}

// WithDevices stores what is known of the devices of a container in its record.
func WithDevices(state any) client.NewContainerOpts {
	return func(_ context.Context, _ *client.Client, c *containers.Container) error {
		if err := extend(c, DevicesExtension, state); err != nil {
			return fmt.Errorf("store devices: %w", err)
		}
		return nil
	}
}

// SetDevices replaces what [WithDevices] has stored.
func SetDevices(ctx context.Context, store containers.Store, id string, state any) error {
	c := containers.Container{ID: id}
	if err := extend(&c, DevicesExtension, state); err != nil {
		return fmt.Errorf("store devices: %w", err)
	}
	_, err := store.Update(ctx, c, "extensions."+DevicesExtension)
	return err
}

// Devices reads what is known of the devices of a container from its record, and reports whether anything is.
func Devices(c containers.Container, state any) (known bool, err error) {
	stored, ok := c.Extensions[DevicesExtension]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(stored.GetValue(), state); err != nil {
		return false, fmt.Errorf("container %s: devices: %w", c.ID, err)
	}
	return true, nil
}

// Definition returns the pod's definition from the record of a container.
func Definition(c containers.Container) (*spec.Pod, error) {
	stored, ok := c.Extensions[PodExtension]
	if !ok {
		return nil, fmt.Errorf("container %s: no pod definition", c.ID)
	}
	pod := new(spec.Pod)
	if err := json.Unmarshal(stored.GetValue(), pod); err != nil {
		return nil, fmt.Errorf("container %s: pod definition: %w", c.ID, err)
	}
	return pod, nil
}

// Info returns the record of a container as it was when the container was loaded.
func Info(ctx context.Context, c client.Container) containers.Container {
	info, _ := c.Info(ctx, client.WithoutRefreshedMetadata) // fails only when it reads the record again
	return info
}

// Containers lists the containers of a pod, in no particular order.
func Containers(ctx context.Context, c *client.Client, uid string) ([]client.Container, error) {
	list, err := c.Containers(ctx, fmt.Sprintf("labels.%q==%q", LabelUID, uid))
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return list, nil
}

// RunningLogs returns the paths of the logs of all containers whose exit is not recorded.
func RunningLogs(ctx context.Context, c *client.Client) (map[string]bool, error) {
	list, err := c.Containers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	logs := map[string]bool{}
	for _, container := range list {
		if labels := Info(ctx, container).Labels; labels[LabelExit] == "" {
			logs[labels[LabelLog]] = true
		}
	}
	return logs, nil
}

// Sandboxes lists the sandboxes of all pods, in no particular order.
func Sandboxes(ctx context.Context, c *client.Client) ([]sandbox.Sandbox, error) {
	list, err := c.SandboxStore().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	return list, nil
}
