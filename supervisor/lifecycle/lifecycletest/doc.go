// Package lifecycletest simulates the world of a pod: an engine that follows a [Script], a supervisor that carries out the
// decisions of package lifecycle, and virtual time, so that a day of crash loop takes a millisecond. A world is a discrete event
// simulation on one goroutine: the same script always gives the same [Step]s.
//
// The world itself checks what a supervisor must never do to an engine: two live runs of a container, a start in a sandbox that
// does not exist, the removal of a running container. [World.Run] returns such a violation as an error. Other invariants can be
// checked in the steps.
package lifecycletest
