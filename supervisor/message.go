package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// A message is something that the loop of a pod handles between two decisions, on its own goroutine. This file declares all of them:
//
//	message          sent by                                            reports
//	startup          Supervisor.startLoop (add.go)                      nothing: it is the first message of every loop
//	changeRequest    Supervisor.change (change.go)                      that a client stops or changes the pod
//	effectDone       effects.run (effect.go)                            that an action succeeded or failed
//	pullProgress     effects.pull (effect.go)                           how much of an image was pulled or imported
//	stageProgress    staging.show (stage.go)                            that loop.staging has changed
//	containerExited  effects.watchContainer (watch.go)                  that the process of a container exited
//	sandboxEnded     effects.watchSandbox (watch.go)                    that the pod sandbox is lost, or that the pod must be evicted
//	shimChanged      effects.watchShim (watch.go)                       that the shim of the pod responds or does not
//	volumesChanged   effects.watchVolumes (watch.go)                    that the volumes of the pod are not updated, or again
//	probeEvents      effects.startProbe (probe.go)                      what a probe found
//	waitReport       effects.startWait (waitfor.go)                     that a condition is met, or why it is not
//	jobEnded         Supervisor.tellEnd (job.go)                        that the Job of the pod has ended
//	deviceReport     effects.startDevices (device.go)                   that a device of a container was plugged in or unplugged
//	heartbeat        loop.answers (heartbeat.go)                        nothing: the daemon checks that the loop works
//	stateWritten     loop.run (loop.go), for the writer of the state    that a write succeeded, failed or hangs
//
// loop.handle (loop.go) handles all of them.
type message interface{ isMessage() }

// startup prepares a new loop: its pod was accepted, recovered or found orphaned.
type startup struct {
	prepare func(now lifecycle.Instant)
}

// changeRequest asks for a change of the pod. The loop sends one answer, unless it ends.
type changeRequest struct {
	change func(now lifecycle.Instant) error // an error rejects the request
	answer chan<- changeAnswer               // has room for the answer
}

// changeAnswer answers a [changeRequest].
type changeAnswer struct {
	saved *state.Write // of the changed state
	err   error        // of the change
}

// errPanicked answers a request whose change panicked. The event InternalError and the log have the panic.
var errPanicked = errors.New("internal error in the pod's supervisor")

// effectDone ends an action that was carried out.
type effectDone struct {
	action lifecycle.Action
	result effectResult
	err    error
}

// effectResult is what a successful action returned. Each field is set for the action that its comment names.
type effectResult struct {
	sandbox   lifecycle.SandboxStarted   // StartSandbox
	container lifecycle.ContainerStarted // StartContainer
	image     lifecycle.ImagePulled      // PullImage, FindImage
	warning   string                     // RunPostStart, RunPreStop
}

// pullProgress reports the progress of a [lifecycle.PullImage].
type pullProgress struct {
	container string
	progress  lifecycle.Progress
}

// stageProgress reports that loop.staging has changed. A full mailbox does without it: the loop publishes after each turn.
type stageProgress struct{}

// containerExited reports the exit of a container.
type containerExited struct {
	watched
	ref  lifecycle.Ref
	exit lifecycle.Exit
	at   time.Time // by the wall clock; zero: not known
}

// sandboxEnded reports that the pod sandbox is lost or, if eviction is not empty, why the pod must be evicted.
type sandboxEnded struct {
	watched
	sandbox  int
	eviction string
}

// shimChanged reports that the shim of the pod stopped responding, responds again, or exited.
type shimChanged struct {
	watched
	responds, exited bool
}

// volumesChanged reports why the volumes of the pod are not updated or, if why is empty, that they are updated again.
type volumesChanged struct {
	watched
	why string
}

// probeEvents reports what one step of a probe led to.
type probeEvents struct {
	watched
	events []lifecycle.Event
}

// waitReport reports that a condition that the pod waits for is met or, if unmet is not empty, why it is not.
type waitReport struct {
	watched
	ref   lifecycle.WaitRef
	unmet string
}

// jobEnded reports how the Job of the pod has ended.
type jobEnded struct{ end lifecycle.JobPart }

// deviceReport reports that a device of a container was plugged in or unplugged.
type deviceReport struct {
	watched
	ref    lifecycle.Ref
	change lifecycle.DeviceChange
}

// stateWritten reports the result of a write of the state file.
type stateWritten struct{ err error }

// watched is embedded in the messages of a watch or a probe. The loop drops them if the watch was stopped in the meantime.
type watched struct{ stopped <-chan struct{} }

// mailbox takes the messages for one loop.
type mailbox chan message

// heartbeat asks the loop of a pod to answer. The loop closes the channel.
type heartbeat chan<- struct{}

// handle makes the requested change, saves it, and answers, also if the change panics.
func (m changeRequest) handle(now lifecycle.Instant, save func() *state.Write) {
	a := changeAnswer{err: errPanicked}
	defer func() { m.answer <- a }()
	if err := m.change(now); err != nil {
		a.err = err
		return
	}
	a.saved = save()
	a.err = nil
}

func (startup) isMessage() {}

func (heartbeat) isMessage() {}

func (changeRequest) isMessage() {}

func (effectDone) isMessage() {}

func (pullProgress) isMessage() {}

func (stageProgress) isMessage() {}

func (containerExited) isMessage() {}

func (sandboxEnded) isMessage() {}

func (shimChanged) isMessage() {}

func (volumesChanged) isMessage() {}

func (probeEvents) isMessage() {}

func (waitReport) isMessage() {}

func (jobEnded) isMessage() {}

func (deviceReport) isMessage() {}

func (stateWritten) isMessage() {}

func (w watched) stale() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}

// post sends a message and blocks until there is room for it. After the end of ctx the message is dropped: what was cancelled with ctx has
// not failed.
func (b mailbox) post(ctx context.Context, m message) {
	if ctx.Err() != nil {
		return
	}
	select {
	case b <- m:
	case <-ctx.Done():
	}
}

// offer sends a message if there is room for it. It never blocks.
func (b mailbox) offer(m message) {
	select {
	case b <- m:
	default:
	}
}

// request sends a [changeRequest] and waits for the answer. It returns false if the loop ended before it handled the request. After the
// error of ctx the loop may still handle it.
func (b mailbox) request(ctx context.Context, ended <-chan struct{},
	change func(lifecycle.Instant) error,
) (a changeAnswer, handled bool, err error) {
	answer := make(chan changeAnswer, 1)
	select {
	case b <- changeRequest{change: change, answer: answer}:
	case <-ended:
		return a, false, nil
	case <-ctx.Done():
		return a, false, ctx.Err()
	}
	select {
	case a = <-answer:
		return a, true, nil
	case <-ended:
	case <-ctx.Done():
		return a, false, ctx.Err()
	}
	select {
	case a = <-answer: // the request was the last message of the loop
		return a, true, nil
	default:
		return a, false, nil
	}
}
