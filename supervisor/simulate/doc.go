// Package simulate runs pods in virtual time, with a script in place of containers. A day of a crash loop takes milliseconds, and the same
// pods and the same script always give the same result.
//
// [Pods] simulates pods, and checks what a [Scenario] asserts: a pod file can be tested in CI without a host. [WorstCases] computes the
// limits of a pod, such as the time until a hanging container is noticed. [Scenario] describes what happens; [Parse] reads it from a file.
//
// Below them is [World], a discrete event simulation on one goroutine. It has the decisions of package lifecycle and the events of package
// emit; docs/design/simulate.md has what it leaves out. It checks what a supervisor must never do to an engine, such as two live runs of
// one container: [World.Run] returns such a violation as an error.
package simulate
