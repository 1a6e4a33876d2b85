// Package supervisor keeps pods as their files want them: one loop for each pod, which asks [lifecycle.Decide] what the
// pod needs, carries the actions out through the small interfaces below, and folds what comes of them into the pod's
// facts. It owns the set of pods, their state on disk, the events and their causes. It knows neither containerd nor
// HTTP nor TOML; cmd joins it with those who do.
package supervisor
