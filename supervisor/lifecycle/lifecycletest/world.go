package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/simulate"
)

// Step is a step of the pod.
type Step = simulate.Step

// Script is the behaviour of the engine.
type Script = simulate.Script

// Start is the start of something.
type Start = simulate.Start

// Run is one run of a container.
type Run = simulate.Run

// Fault is how an unavailable engine affects an action.
type Fault int

// The faults: none; the engine is unavailable before the action; the engine carries it out and becomes unavailable before it
// answers.
const (
	NoFault Fault = iota
	Unavailable
	UnavailableAfter
)

// World is a host with one pod. The fields may be set before the first [simulate.World.Run]. It is not safe for concurrent use.
type World struct {
	*simulate.World
	*simulate.Pod

	Fault     func(lifecycle.Action) Fault             // nil: only what [simulate.World.SetUnavailable] sets
	Delay     func() time.Duration                     // delay of an event; nil: none
	Duplicate func() (after time.Duration, again bool) // whether an event arrives twice; nil: never
}

// New returns a world at its first instant.
func New(pod *spec.Pod, script Script) *World {
	w := &World{World: simulate.New()}
	w.Pod = w.Add(pod, script)
	w.Carry, w.Lags = w.carry, w.lags
	return w
}

// carry carries out an action, subject to faults.
func (w *World) carry(a lifecycle.Action, do func() lifecycle.Event) lifecycle.Event {
	fault := NoFault
	if w.Fault != nil {
		fault = w.Fault(a)
	}
	if fault == NoFault {
		return do()
	}
	if fault == UnavailableAfter {
		do()
	}
	return lifecycle.ActionFailed{
		Action: a, Failure: lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "engine unavailable"}, At: w.Now(),
	}
}

// lags returns the delays with which an event arrives.
func (w *World) lags() []time.Duration {
	lag := time.Duration(0)
	if w.Delay != nil {
		lag = w.Delay()
	}
	lags := []time.Duration{lag}
	if w.Duplicate != nil {
		if after, again := w.Duplicate(); again {
			lags = append(lags, lag+after)
		}
	}
	return lags
}

// Reboot powers the host off for a while, without a shutdown.
func (w *World) Reboot(off time.Duration) { w.Cut(off, false) }
