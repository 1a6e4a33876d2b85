// Package lifecycle decides what a pod needs.
//
// [Facts] is what is known about a pod: times and outcomes, never states. [Facts.Apply] folds one [Event] into the facts and
// makes no decision. [Decide] computes a [Decision] from the pod, the facts and the current [Instant], and keeps no state.
// [StatusOf] computes the status that users see. All of them are pure functions: they read no clock, start no goroutine, write
// no log and do no I/O.
//
// The life of a pod is divided into rounds. The first sandbox opens round 1. A new sandbox, after a reboot or a killed shim,
// opens the next round, in which every init container runs again. So does a restart of all containers, in the same sandbox. A
// run of a container is an [Attempt]. It refers to its round and its sandbox, and its number is unique within the pod, so a late
// event refers to an attempt that has terminated and changes nothing.
//
// Every action has exactly one outcome event: the event of its success, or [ActionFailed]. Until then [Facts.Unresolved] returns
// the action. After a crash of the supervisor it is carried out again, so its implementation must adopt what already exists.
//
// The files are in layers, each uses only those above it:
//
//   - reason.go, instant.go, status.go: words, time, and what users see
//   - container.go, facts.go: what is known
//   - restart.go, backoff.go: whether a container runs again, and when
//   - action.go, event.go: what can be done, and what can happen
//   - probe.go, hook.go, wait.go, plan.go: what containers and pods have for it
//   - stop.go, update.go, clock.go, view.go: the end of a life, its changes, reboots and clocks, and its status
//   - job.go: the end of a Job, and the turn of each of its pods
//   - start.go, trial.go, escalate.go: what [Decide] does for a pod that runs, for an update, and for one that stays unready
//   - recover.go, decide.go: after a crash of the supervisor, and the decision
//
// docs/design/states.md has drawings of the states.
//
// The rules are those of the kubelet. In comments, "contract 4.1" is a section of docs/design/kubelet-contract.md, and
// "deviation 5" is a row of docs/design/deviations.md. The package imports no other package of Podstead but spec.
package lifecycle
