// Package lifecycle decides what a pod needs.
//
// [Facts] is what is known of a pod: times and outcomes, never states. [Facts.Apply] folds one [Event] into them and
// holds no policy; [Decide] turns pod, facts and the present [Instant] into a [Decision] and holds no memory;
// [StatusOf] computes what a person is shown. None of them reads a clock, starts a goroutine, logs, or touches the
// world, so the same arguments give the same answer, and time is a value.
//
// A pod lives in rounds. The first sandbox opens round 1; the loss of a sandbox (a reboot, a killed shim) opens the
// next, in which every init container runs again. A run of a container is an [Attempt]; it names its round and its
// sandbox, and its number never comes back in the life of the pod, so whatever arrives late speaks of an attempt that
// is over, and changes nothing.
//
// What an action sets in motion ends in exactly one event: a success of its own type, or [ActionFailed]. Until then
// [Facts.Unresolved] names the action, and after a crash of the supervisor it is carried out again: every effect
// adopts what it finds.
//
// The rules are the kubelet's (docs/design/lifecycle.md names the sources); the package imports nothing of ours but spec.
package lifecycle
