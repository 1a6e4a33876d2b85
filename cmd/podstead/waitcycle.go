package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
)

// presentTimeout bounds how long a command that checks pod files waits for the daemon.
const presentTimeout = 5 * time.Second

// readPod is a pod of a file that was read.
type readPod struct {
	path string
	pod  *spec.Pod
}

// waitCycles prints which of the pods wait for each other, also through pods of this host, and returns the names of all of them. The daemon
// sees one file after the other, so that it would accept the first.
func (a *app) waitCycles(cmd *cobra.Command, list []readPod) []string {
	if !slices.ContainsFunc(list, func(r readPod) bool { return len(r.pod.WaitsForPods()) > 0 }) {
		return nil
	}
	return a.cyclesAmong(list, a.present(cmd))
}

// cyclesAmong is waitCycles with other pods that exist.
func (a *app) cyclesAmong(list []readPod, present []*spec.Pod) []string {
	var pods []*spec.Pod
	for _, r := range list {
		pods = append(pods, r.pod)
	}
	var names []string
	for _, cycle := range spec.WaitCycles(pods, present) {
		i := slices.IndexFunc(list, func(r readPod) bool { return r.pod.Name == cycle[0] })
		text := fmt.Sprintf("%s: waitFor: pods wait for each other: %s", list[i].path, strings.Join(cycle, " -> "))
		fmt.Fprintln(a.err, plain.Text(text))
		a.hint("remove one of these pods from waitFor")
		names = append(names, cycle...)
	}
	return names
}

// present returns the pods of this host that have not completed and are not being deleted: those of the daemon or, if it is not running,
// those that it starts.
func (a *app) present(cmd *cobra.Command) (pods []*spec.Pod) {
	c, err := a.config(cmd)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), presentTimeout)
	defer cancel()
	client, _ := newClient(cmd, c)
	list, err := a.running(client).Pods(ctx)
	for i := range list.Items {
		p := &list.Items[i]
		if p.Metadata.UID == "" || p.Metadata.DeletionTimestamp != nil || p.Status.Phase.Terminal() {
			continue
		}
		pod := p.Spec.Pod
		pod.Name = p.Metadata.Name
		pods = append(pods, &pod)
	}
	if !errors.Is(err, api.ErrUnavailable) {
		return pods
	}
	files, err := expand([]string{c.Pods.Dir})
	if err != nil {
		return nil // there is no directory, or no file in it
	}
	for _, path := range files {
		text, err := spec.ReadPodFile(path)
		if err != nil {
			continue
		}
		if pod, _ := spec.Parse(path, text); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}
