// Package supervisor runs pods: it keeps each pod as its definition requires. Each pod has a loop, which asks [lifecycle.Decide] what to
// do, carries the actions out through the interfaces of ports.go, and folds the results into the facts of the pod.
//
// The package owns the set of pods, their state and their events. It must not import containerd, HTTP or TOML; the daemon connects it to
// the packages that do.
package supervisor
