// Package lifecycletest is a world for a pod to live in: an engine that does what a [Script] says, a supervisor that
// carries out what lifecycle decides, and time that is a number, so that a day of crash loop takes a millisecond. Every
// world is a discrete event simulation on one goroutine: the same script gives the same [Step]s.
//
// The world checks by itself what no supervisor may ever do to an engine (two live runs of a container, a start in a
// sandbox that is not there, the removal of something alive); [World.Run] returns it as an error. What else must hold is
// for its user to look at in the steps.
package lifecycletest
