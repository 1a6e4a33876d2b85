package simulate

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// Duration is a duration in the syntax of [time.ParseDuration], such as "40s" or "1h30m".
type Duration string

// Duration returns the parsed duration, 0 for an empty or an invalid one.
func (d Duration) Duration() time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return v
}

// Scenario is what happens to pods, and what must be true of them.
//
// Nothing fails in the zero Scenario: images are pulled and containers start without a delay, probes succeed, init containers succeed after
// a second, and other containers run until they are stopped.
//
// docs/reference/scenario.md is generated from the comments of these types and their fields.
type Scenario struct {
	// Time that is simulated. `--for` replaces it. Default: `30m`.
	For Duration `json:"for,omitempty"`
	// What containers do.
	Containers []Container `json:"containers,omitempty"`
	// When conditions of `waitFor` are met that are not about pods. Those that are not listed are met at once.
	Conditions []Condition `json:"conditions,omitempty"`
	// What happens to pods and to the host.
	Events []Happening `json:"events,omitempty"`
	// What must be true. If it is not, `podstead simulate` exits with code 1.
	Assert []Assertion `json:"assert,omitempty"`

	file *spec.Decoded // that the scenario was read from; nil: none
	path string        // of that file
}

// Container is what a container does.
type Container struct {
	// Pod of the container. Default: the only pod that has a container of the name.
	Pod string `json:"pod,omitempty"`
	// Name of the container. Required.
	Name string `json:"name"`
	// Time that the registry takes for the image. Default: `0s`.
	PullTakes Duration `json:"pullTakes,omitempty"`
	// The image is on the host at the start. Default: false. The images of an update are always there.
	ImagePresent bool `json:"imagePresent,omitempty"`
	// Runs of the container in their order. The last one is repeated. Default: one run that ends when the container is stopped, of an init
	// container one that succeeds after a second.
	Runs []ContainerRun `json:"runs,omitempty"`
	// Results of probes at times of the simulation. They replace those of the runs, and later entries replace earlier ones.
	Probes []ProbeAnswer `json:"probes,omitempty"`
}

// ContainerRun is a run of a container.
type ContainerRun struct {
	// Number of runs like this one, from 1 to 10000. Default: 1.
	Times int64 `json:"times,omitempty"`
	// Time that the start takes. Default: `0s`.
	StartTakes Duration `json:"startTakes,omitempty"`
	// Error with which the start fails, such as `exec: "serve": executable file not found`. Default: the start succeeds.
	StartError string `json:"startError,omitempty"`
	// Time until the process exits. Default: `0s` with `exitCode` or `oomKilled`, otherwise it runs until it is stopped.
	Lasts Duration `json:"lasts,omitempty"`
	// Exit code, from 0 to 255. Default: 0, or 137 with `oomKilled`.
	ExitCode int64 `json:"exitCode,omitempty"`
	// The run ends because it is out of memory. Default: false.
	OOMKilled bool `json:"oomKilled,omitempty"`
	// The process ignores the stop signal, so that it is killed after its grace period. Default: false.
	IgnoresStop bool `json:"ignoresStop,omitempty"`
	// Time from the stop signal to the exit. Default: `0s`.
	StopTakes Duration `json:"stopTakes,omitempty"`
	// Exit code of a run that is stopped, from 0 to 255, unless it is killed. Default: 143.
	StopExitCode *int64 `json:"stopExitCode,omitempty"`
	// Time from the start in which all probes fail. Default: `0s`.
	ReadyAfter Duration `json:"readyAfter,omitempty"`
	// Time from the start after which all probes time out. Default: they do not.
	HangsAfter Duration `json:"hangsAfter,omitempty"`
	// Time that the postStart hook takes. Default: `0s`.
	PostStartTakes Duration `json:"postStartTakes,omitempty"`
	// Time that the preStop hook takes. Default: `0s`.
	PreStopTakes Duration `json:"preStopTakes,omitempty"`
}

// ProbeAnswer is the result of a probe in a time of the simulation.
type ProbeAnswer struct {
	// `startup`, `liveness` or `readiness`. Required.
	Probe string `json:"probe"`
	// Time from which it applies. Default: `0s`.
	From Duration `json:"from,omitempty"`
	// Time until which it applies. Default: the end.
	To Duration `json:"to,omitempty"`
	// The probe fails. Default: false.
	Fails bool `json:"fails,omitempty"`
	// Time until the answer. A probe that takes longer than `timeoutSeconds` of the pod file fails. Default: `0s`.
	Latency Duration `json:"latency,omitempty"`
}

// Condition is a condition of waitFor that is not about a pod.
type Condition struct {
	// Entry of `waitFor`, such as `network-online`. Required.
	Condition string `json:"condition"`
	// Time from each boot of the host, and from the start of the simulation, after which it is met. Required.
	MetAfter Duration `json:"metAfter"`
}

// Happening is an event of a scenario.
type Happening struct {
	// Time at which it happens. Default: `0s`.
	At Duration `json:"at,omitempty"`
	// What happens. Required.
	Event string `json:"event"`
	// Pod of `stop`, `start`, `restart` and `oomKill`. Default: the only pod.
	Pod string `json:"pod,omitempty"`
	// Container of `restart` and `oomKill`. Required for `oomKill`. Default: the whole pod.
	Container string `json:"container,omitempty"`
	// Device of `unplug`, as in `devices` of the pod file. Required for it.
	Device string `json:"device,omitempty"`
	// Grace period of `stop`. Default: that of the pod.
	Grace Duration `json:"grace,omitempty"`
	// Pod file of `update`, relative to the scenario file. Pods of the file that do not exist are created.
	File string `json:"file,omitempty"`
	// Time by which `clockLeap` sets the wall clock forward, or back if it is negative.
	By Duration `json:"by,omitempty"`
	// How long it lasts. Default: `30s` of `reboot` and `powerCut`, `5s` of `daemonCrash`, otherwise until the end.
	For Duration `json:"for,omitempty"`
}

// EventKind is an event that a [Happening] can have.
type EventKind struct {
	Name   string
	Fields []string // that it uses beside `at` and `event`
	Does   string   // for people

	lasts    time.Duration // default of `for`
	host     string        // what the timeline has of it; empty: the events of the pod show it
	restarts bool          // the daemon is restarted
}

// EventKinds returns the values of [Happening.Event], in the order of the reference.
func EventKinds() []EventKind { return slices.Clone(eventKinds) }

var eventKinds = []EventKind{
	{"stop", []string{"pod", "grace"}, "a person stops the pod", 0, "", false},
	{"start", []string{"pod"}, "a person starts a pod again that was stopped or has completed", 0, "", false},
	{"restart", []string{"pod", "container"}, "a person restarts the pod, or one container", 0, "", false},
	{"update", []string{"file"}, "a person applies another pod file", 0, "", false},
	{"oomKill", []string{"pod", "container"}, "the kernel kills the container, which is out of memory", 0, "", false},
	{"unplug", []string{"device", "for"}, "a device is unplugged from the host, and plugged in again", 0, "Device is unplugged", false},
	{"reboot", []string{"for"}, "the host shuts down, which stops the pods, and boots", 30 * time.Second, "Host is shut down", true},
	{"powerCut", []string{"for"}, "the host is off without a shutdown, and boots", 30 * time.Second, "Host loses its power", true},
	{"daemonCrash", []string{"for"}, "the daemon is killed, and starts again", 5 * time.Second, "Daemon is killed", true},
	{"clockLeap", []string{"by"}, "the wall clock is set", 0, "Wall clock is set", false},
	{"registryDown", []string{"for"}, "images cannot be pulled", 0, "Registry is unavailable", false},
	{"diskFull", []string{"for"}, "images cannot be pulled, containers not created, the state of pods not saved", 0, "Disk is full", false},
	{
		"engineDown",
		[]string{"for"},
		"the container engine is unavailable, containers keep running", 0, "Container engine is unavailable", false,
	},
}

func (h *Happening) kind() *EventKind {
	i := slices.IndexFunc(eventKinds, func(k EventKind) bool { return k.Name == h.Event })
	if i < 0 {
		return nil
	}
	return &eventKinds[i]
}

// extent is how long or how far, for people.
func (h *Happening) extent() string {
	switch lasts := h.lasts(); {
	case h.Device != "" && lasts > 0:
		return " (" + h.Device + ") for " + offset(lasts)
	case h.Device != "":
		return " (" + h.Device + ")"
	case h.By != "":
		return " by " + offset(h.By.Duration())
	case lasts > 0:
		return " for " + offset(lasts)
	}
	return ""
}

// lasts returns how long the event lasts; 0: until the end.
func (h *Happening) lasts() time.Duration {
	if h.For != "" {
		return h.For.Duration()
	}
	return h.kind().lasts
}

// Assertion is what must be true. Exactly one of `readyWithin`, `maxRestarts`, `maxUnready`, `phase` and `event` is set.
type Assertion struct {
	// Pod. Default: the only pod.
	Pod string `json:"pod,omitempty"`
	// Container of `maxRestarts` and `event`. Default: all of them.
	Container string `json:"container,omitempty"`
	// The pod must become ready in this time after `from`, or be ready then.
	ReadyWithin Duration `json:"readyWithin,omitempty"`
	// Maximum number of restarts of the containers.
	MaxRestarts *int64 `json:"maxRestarts,omitempty"`
	// Time in which `maxRestarts` are counted, at any time between `from` and `to`. Default: the whole time.
	In Duration `json:"in,omitempty"`
	// Maximum time for which the pod is not ready at a stretch after it was ready first.
	MaxUnready Duration `json:"maxUnready,omitempty"`
	// The pod must be in this phase at the time `at`: `Pending`, `Running`, `Succeeded`, `Failed`.
	Phase string `json:"phase,omitempty"`
	// Time of `phase`. Default: the end.
	At Duration `json:"at,omitempty"`
	// Reason or kind of an event that must be emitted, as in the reference of events.
	Event string `json:"event,omitempty"`
	// The event must not be emitted. Default: false.
	Never bool `json:"never,omitempty"`
	// Time from which the assertion applies. Default: `0s`.
	From Duration `json:"from,omitempty"`
	// Time until which the assertion applies. Default: the end.
	To Duration `json:"to,omitempty"`
}
