package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The labels of containers and sandboxes. Together they say all that has to be found again.
const (
	labelUID        = "podstead.io/uid"
	labelPod        = "podstead.io/pod"
	labelSandbox    = "podstead.io/sandbox"
	labelContainer  = "podstead.io/container"
	labelRound      = "podstead.io/round"
	labelAttempt    = "podstead.io/attempt"
	labelRestarts   = "podstead.io/restarts"
	labelSpecHash   = "podstead.io/spec-hash"
	labelImageID    = "podstead.io/image-id"
	labelImageArch  = "podstead.io/image-architecture"
	labelStopSignal = "podstead.io/image-stop-signal"
	labelLog        = "podstead.io/log"
	labelMessage    = "podstead.io/termination-message" // see messagePolicy
	labelBoot       = "podstead.io/boot"                // the kernel's ID of the boot in which it ran
	labelExit       = "podstead.io/exit"                // an exit, as JSON; set when the container has ended
)

// podExtension is the container's extension that holds the pod's definition as JSON.
const podExtension = "podstead.io/pod"

// containerID is the engine's ID of a run. It follows from what the run is, so that a repeated action finds it.
func containerID(uid string, ref lifecycle.Ref) string {
	return hash("container", uid, ref.Container, strconv.Itoa(ref.Round), strconv.Itoa(ref.Attempt))
}

// sandboxID is the engine's ID of a sandbox.
func sandboxID(uid string, sandbox int) string { return hash("sandbox", uid, strconv.Itoa(sandbox)) }

func hash(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}

// checkUID keeps a UID from naming any folder but the pod's.
func checkUID(uid string) error {
	if uid == "" || uid == "." || uid == ".." || uid != filepath.Base(uid) {
		return fmt.Errorf("pod UID %q cannot be the name of a folder", uid)
	}
	return nil
}

func runLabels(uid string, pod *spec.Pod, a lifecycle.StartContainer, c *spec.Container) map[string]string {
	return map[string]string{
		labelUID: uid, labelPod: pod.Name, labelContainer: a.Container, labelSpecHash: c.Hash,
		labelSandbox: strconv.Itoa(a.Sandbox), labelRound: strconv.Itoa(a.Round),
		labelAttempt: strconv.Itoa(a.Attempt), labelRestarts: strconv.Itoa(a.Restarts),
	}
}

// runOf reads a run out of the record of its container.
func runOf(c containers.Container) (lifecycle.Run, error) {
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
				Container: c.Labels[labelContainer], Round: number(labelRound), Attempt: number(labelAttempt),
			},
			Sandbox: number(labelSandbox), Restarts: number(labelRestarts),
		},
		ID: c.ID, Image: c.Image, ImageID: c.Labels[labelImageID], Architecture: c.Labels[labelImageArch],
	}
	return run, bad
}

func startedOf(run lifecycle.Run) lifecycle.ContainerStarted {
	return lifecycle.ContainerStarted{Ref: run.Ref, ID: run.ID, Image: run.Image, ImageID: run.ImageID, Architecture: run.Architecture}
}

// withDefinition keeps the pod's definition with the container.
func withDefinition(pod *spec.Pod) client.NewContainerOpts {
	return func(_ context.Context, _ *client.Client, c *containers.Container) error {
		data, err := json.Marshal(pod)
		if err != nil {
			return fmt.Errorf("keep definition of pod: %w", err)
		}
		if c.Extensions == nil {
			c.Extensions = map[string]typeurl.Any{}
		}
		c.Extensions[podExtension] = &anypb.Any{TypeUrl: podExtension, Value: data}
		return nil
	}
}

// definitionOf returns the pod's definition that is kept with the container.
func definitionOf(c containers.Container) (*spec.Pod, error) {
	kept, ok := c.Extensions[podExtension]
	if !ok {
		return nil, fmt.Errorf("container %s: it has no definition of its pod", c.ID)
	}
	pod := new(spec.Pod)
	if err := json.Unmarshal(kept.GetValue(), pod); err != nil {
		return nil, fmt.Errorf("container %s: definition of its pod: %w", c.ID, err)
	}
	return pod, nil
}

// info is the record of a container as it was when it was loaded.
func info(ctx context.Context, c client.Container) (containers.Container, error) {
	return c.Info(ctx, client.WithoutRefreshedMetadata)
}

// containersOf lists the containers of a pod, in no certain order.
func (r *Runtime) containersOf(ctx context.Context, uid string) ([]client.Container, error) {
	list, err := r.client.Containers(ctx, fmt.Sprintf("labels.%q==%q", labelUID, uid))
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return list, nil
}
