// Package lifecycletest has what the tests of lives of pods need beside package simulate: a [World] with one pod, whose engine
// is unavailable and whose events are late or arrive twice, and [Timeline], which records actions, events and states as text.
//
// The world itself checks what a supervisor must never do to an engine. Other invariants can be checked in the [Step]s.
package lifecycletest
