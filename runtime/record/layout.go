package record

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/podstead/podstead/spec"
)

// Dirs are the three base directories.
type Dirs struct {
	State string // persistent state
	Run   string // runtime state, cleared at boot
	Log   string // logs of containers
}

// Engine is the persistent state of the container engine.
func (d Dirs) Engine() string { return filepath.Join(d.State, "engine") }

// EngineRun is the runtime state of the container engine.
func (d Dirs) EngineRun() string { return filepath.Join(d.Run, "engine") }

// Roots contains the root file systems of containers with a user namespace.
func (d Dirs) Roots() string { return filepath.Join(d.Run, "rootfs") }

// Pods contains the directory of each pod.
func (d Dirs) Pods() string { return filepath.Join(d.State, "pods") }

// Pod is the persistent state of a pod.
func (d Dirs) Pod(uid string) string { return filepath.Join(d.Pods(), uid) }

// PersistentVolumes contains the persistent volumes.
func (d Dirs) PersistentVolumes() string { return filepath.Join(d.State, "volumes") }

// RunVolumes contains the volumes of pods that are in memory.
func (d Dirs) RunVolumes() string { return filepath.Join(d.Run, "volumes") }

// Trial is the directory of package ociruntime.
func (d Dirs) Trial() string { return filepath.Join(d.Run, "trial") }

// TrialResult is the file with the result of package ociruntime.
func (d Dirs) TrialResult() string { return filepath.Join(d.Run, "trial.json") }

// Users is the file with the ID ranges of pods.
func (d Dirs) Users() string { return filepath.Join(d.State, "users.json") }

// NetworkState is the file with the persistent state of the network.
func (d Dirs) NetworkState() string { return filepath.Join(d.State, "network.json") }

// NetworkLeases is the file with the addresses in use.
func (d Dirs) NetworkLeases() string { return filepath.Join(d.Run, "network.json") }

// Etc contains the files of /etc for the containers of a sandbox. Containers can write to them without limit, therefore they
// are on disk and not in /run.
func (d Dirs) Etc(uid string, sandbox int) string {
	return filepath.Join(d.Pod(uid), "etc", strconv.Itoa(sandbox))
}

// Message is the file that a container sees at its terminationMessagePath.
func (d Dirs) Message(uid, container, id string) string {
	return filepath.Join(d.Pod(uid), "messages", container, id)
}

// Namespaces contains the directory of each pod with pinned namespaces.
func (d Dirs) Namespaces() string { return filepath.Join(d.Run, "ns") }

// Sandboxes contains the directory of each sandbox of a pod.
func (d Dirs) Sandboxes(uid string) string { return filepath.Join(d.Namespaces(), uid) }

// Sandbox contains the pinned namespaces of a sandbox.
func (d Dirs) Sandbox(uid string, sandbox int) string {
	return filepath.Join(d.Sandboxes(uid), strconv.Itoa(sandbox))
}

// Processes contains the process files of the containers of a pod.
func (d Dirs) Processes(uid string) string { return filepath.Join(d.Run, "process", uid) }

// Exec contains the FIFOs of commands.
func (d Dirs) Exec() string { return filepath.Join(d.Run, "exec") }

// Files contains the mount points of copies from and to containers that are not running.
func (d Dirs) Files() string { return filepath.Join(d.Run, "files") }

// ImageVolumes contains the directory of each pod with image volumes.
func (d Dirs) ImageVolumes() string { return filepath.Join(d.Run, "images") }

// Images contains the mount points of the image volumes of a pod.
func (d Dirs) Images(uid string) string { return filepath.Join(d.ImageVolumes(), uid) }

// MemoryLogs contains the logs of containers whose log driver is memory or journald.
func (d Dirs) MemoryLogs() string { return filepath.Join(d.Run, "logs") }

// InMemory returns the directories for containers whose log driver is memory.
func (d Dirs) InMemory() Dirs {
	d.Log = d.MemoryLogs()
	return d
}

// PodLogs contains the logs of a pod.
func (d Dirs) PodLogs(uid, pod string) string {
	return filepath.Join(d.Log, spec.FileName(pod)+"_"+uid)
}

// ContainerLogs contains the logs of a container.
func (d Dirs) ContainerLogs(uid, pod, container string) string {
	return filepath.Join(d.PodLogs(uid, pod), container)
}

// ContainerLog is the log of a container after this number of restarts.
func (d Dirs) ContainerLog(uid, pod, container string, restarts int) string {
	return filepath.Join(d.ContainerLogs(uid, pod, container), strconv.Itoa(restarts)+".log")
}

// CheckUID returns an error if a UID is not a valid name of a directory.
func CheckUID(uid string) error {
	if uid == "" || uid == "." || uid == ".." || uid != filepath.Base(uid) {
		return fmt.Errorf("pod UID %q is not a valid directory name", uid)
	}
	return nil
}
